/*
 * From the commit to the engine, and what the engine forgets.
 *
 * Door: src/wiring/accept.ts and engines.ts (offer). Engine: src/queue/redis/scripts.ts, a step for each script. Tend: src/queue/redis/tend.ts. A claim is one
 * step here; take.pml has its pieces. The engine may be emptied (same run), or begun anew with what it knew at an earlier instant (another run): an old
 * snapshot, or a replica that was promoted and lacks the last writes.
 *
 * It holds that nothing is claimed twice; that what the engine has confirmed is not overtaken by what was committed after it; and that everything
 * ends once the faults stop.
 *
 * Bounded: two handoffs of one notification each, numbered in the order in which they began and committed in any; one copy of the engine's memory, taken at any
 * time; two faults of the engine; two deaths, of doors or of tend. Left out: a server that is promoted, loses its place and gets it back without having been
 * begun anew, all between two looks of tend.
 *
 * Rules, and what breaks without:
 * rule OFFER_FIRST: entries are offered after the commit, never before | the entry is found to be nothing and dropped, and its mark hides that
 * rule NO_TEND: what is open and has no mark is offered again | what a door died with, or the engine forgot, never ends
 * rule MARK_APART: a mark is written in one step with its entries | a mark without entries, and nobody offers them again
 * rule ALWAYS_OPEN: an engine that may have forgotten gives nothing until it was tended | what it forgot is overtaken
 * rule LOOK_AT_NEWEST: it is opened when everything that is open was looked at | what was not looked at is overtaken
 * rule OPEN_ANY_RUN: it is opened for the run that was looked at | it was begun anew meanwhile, and what it forgot is overtaken
 * rule OPEN_BY_RUN: it is opened only if it still knows of the look | it was emptied meanwhile, which leaves its run as it is, and what it forgot is overtaken
 * rule OPEN_AFTER_ROUND: a look at some of what is open does not open it | it was emptied meanwhile, and what it forgot is overtaken
 * rule TRUST_ENTRY: a claim asks the handoff, not the entry | what came back with an old copy is claimed twice
 */

#ifdef QUICK
#define MOST_FAULTS 1
#define MOST_DEATHS 1
#else
#define MOST_FAULTS 2
#define MOST_DEATHS 2
#endif

/* PostgreSQL: a handoff is not committed yet, open, or over. */
#define UNBORN 0
#define OPEN 1
#define OVER 2
byte handoff[3];

/* The engine's memory, and a copy of it from some earlier instant. Places 1 and 2 are used. */
typedef Memory {
  bool mark[3];
  bool entry[3];
  byte open;   /* the run for which it is known to be complete */
  bool look;   /* a look of tend is under way */
};
Memory memory, copied, nothing;
byte running = 1;

/* What nobody in the system knows. */
bool isConfirmed[3];
byte claims[3];
byte faults, deaths;

#define isOver (handoff[1] == OVER && handoff[2] == OVER)
#ifdef ALWAYS_OPEN
#define gives true
#else
#define gives (memory.open == running)
#endif

inline copy(from, to) {
  to.mark[1] = from.mark[1];
  to.mark[2] = from.mark[2];
  to.entry[1] = from.entry[1];
  to.entry[2] = from.entry[2];
  to.open = from.open
}

inline offer(n) {
#ifdef MARK_APART
  if
  :: atomic { !memory.mark[n] -> memory.mark[n] = true };
     if
     :: atomic { memory.entry[n] = true; isConfirmed[n] = true }
     :: atomic { deaths < MOST_DEATHS -> deaths++ }
     fi
  :: memory.mark[n]
  fi
#else
  atomic {
    if
    :: !memory.mark[n] -> memory.mark[n] = true; memory.entry[n] = true
    :: else
    fi;
    isConfirmed[n] = true
  }
#endif
}

active [2] proctype Door() {
  byte n = _pid + 1;
#ifdef OFFER_FIRST
  offer(n);
#endif
  handoff[n] = OPEN;
  if
  :: skip
  :: atomic { deaths < MOST_DEATHS -> deaths++ }; goto stop
  fi;
  offer(n);
stop:
}

active proctype Claimer() {
  byte n;
  do
  :: atomic { gives && (memory.entry[1] || memory.entry[2]) ->
       n = (memory.entry[1] -> 1 : 2);
       memory.entry[n] = false;
       if
#ifdef TRUST_ENTRY
       :: handoff[n] != UNBORN ->
#else
       :: handoff[n] == OPEN ->
#endif
          handoff[n] = OVER;
          claims[n]++;
          assert(claims[n] == 1);
          assert(!(n == 2 && handoff[1] == OPEN && isConfirmed[1]))
       :: else
       fi;
       n = 0
     }
  :: isOver -> break
  od
}

/* Also the look by number while it is open: it finds what has no mark. */
inline offerMissing(n) {
  if
  :: handoff[n] == OPEN && !memory.mark[n] -> offer(n)
  :: else
  fi
}

inline afterRound() {
#ifdef OPEN_AFTER_ROUND
  if
  :: running == ofRun -> memory.open = running
  :: else
  fi;
#endif
  ofRun = 0
}

#ifndef NO_TEND
active proctype Tend() {
  byte ofRun;
again:
  if
  :: isOver -> goto stop
  :: atomic { memory.open != running -> memory.look = true; ofRun = running };
#ifndef LOOK_AT_NEWEST
     offerMissing(1);
#endif
     offerMissing(2);
     if
     :: skip
     :: atomic { deaths < MOST_DEATHS -> deaths++; ofRun = 0 }; goto again
     fi;
     atomic {
       if
#ifdef OPEN_ANY_RUN
       :: true -> memory.open = running
#else
#ifdef OPEN_BY_RUN
       :: running == ofRun -> memory.open = running
#else
       :: running == ofRun && memory.look -> memory.open = running; memory.look = false
#endif
#endif
       :: else
       fi;
       ofRun = 0
     }
  :: atomic { memory.open == running && handoff[1] == OPEN && !memory.mark[1] -> ofRun = running };
     offer(1);
     atomic { afterRound() }
  :: atomic { memory.open == running && handoff[2] == OPEN && !memory.mark[2] -> ofRun = running };
     offer(2);
     atomic { afterRound() }
#ifdef OPEN_AFTER_ROUND
  :: atomic { memory.open == running -> ofRun = running };
     atomic { afterRound() }
#endif
  fi;
  goto again;
stop:
}
#endif

active proctype Copier() {
  atomic { copy(memory, copied) }
}

active proctype Faults() {
  do
  /* Emptied. */
  :: atomic { faults < MOST_FAULTS -> faults++; copy(nothing, memory); memory.look = false }
  /* Begun anew, or another was promoted. */
  :: atomic { faults < MOST_FAULTS -> faults++; running++; copy(copied, memory); memory.look = false }
  :: break
  od
}

#ifdef ENDS
ltl ends { <> isOver }
#endif
