/*
 * From the engine to a claim: entries are taken privately, claimed by one statement, and answered for.
 *
 * Taker: src/queue/redis/engine.ts (take, done) and src/queue/postgres/claim-statement.ts (CLAIM_GIVEN). Keeper: RESTORE and offering again in
 * src/queue/redis/tend.ts, queue_bring_home. Other: cancelling, expiring and moving (queue_take_back), which race with both. A step is a script of Redis or a
 * statement of PostgreSQL. Between two steps anybody may pause, past its deadline too, or die. Redis may be emptied, or come back with what it knew at first.
 *
 * It holds that each notification is claimed once at most; that what was cancelled or has expired is not claimed, nor the other way round; and that each is claimed or
 * ended once the faults stop. A claim stands for all that lease.pml says of it.
 *
 * Bounded: one handoff of two notifications, two takers, one death, one deadline that passes under a living taker, one fault of Redis, one claim that leaves
 * what it could have (too large, or paused), one bringing home, one cancellation or move.
 *
 * Rules, and what breaks without:
 * rule NO_BIT_CHECK: a claim takes only what its handoff has as open | what was given twice is claimed twice, and what was cancelled is sent
 * rule NO_LOCK: it asks, and sets the bits, under the lock of the handoff's row | two ask at once, and both claim
 * rule BIT_AFTER_CLAIM: the bit is set in the statement that writes the claim, not after it | who dies in between leaves it to be claimed twice
 * rule BIT_BEFORE_CLAIM: the bit is set in the statement that writes the claim, not before it | who dies in between has lost it
 * rule TAKE_APART: what is taken is in the private list in the same step | who dies in between has lost it
 * rule NO_RESTORE: what was taken and not answered for goes back after its deadline | what a taker died with never ends
 * rule LEFT_DROPPED: what is open and was not claimed goes back | it has its mark, so nobody offers it again
 * rule CANCEL_WITHOUT_BIT: who cancels or expires sets the bit | what was cancelled is sent
 * rule CANCEL_APART: who cancels asks and sets the bit under the lock | what is being sent is called cancelled
 * rule MOVE_WITHOUT_BIT: what is moved leaves its handoff | it is claimed from both places
 * rule HOME_WITHOUT_ROW: what is brought home leaves its handoff in the same statement | it is claimed from both places
 * rule HOME_ALL: only what is open is brought home | what was claimed is claimed again
 */

#define BOTH 3
#define MOST_DEATHS 1
#ifdef QUICK
#define MOST_EARLY 0
#define MOST_OTHERS 0
#else
#define MOST_EARLY 1
#define MOST_OTHERS 1
#endif

/* PostgreSQL. Sets of notifications are bits: 1 and 2. */
bool isThere = true;   /* the handoff's row */
byte done;             /* its bits */
byte ready;            /* rows of carillon.ready */
byte claimed;          /* in a claim, or have been */
byte ended;            /* cancelled or expired */

/* The engine. */
bool mark = true;
byte waiting = BOTH;
byte taken[2];
byte orphaned;   /* taken by somebody who died */

byte deaths, early, others;
bool hasLeft;

#define isOver ((claimed | ended) == BOTH)

inline claim(what) {
  assert((what & claimed) == 0);
  assert((what & ended) == 0);
  claimed = claimed | what
}

/* A handoff goes with its last bit. */
inline set(bits) {
  done = bits;
  isThere = (done == BOTH -> false : isThere)
}

inline mayDie() {
  if
  :: skip
  :: atomic { deaths < MOST_DEATHS -> deaths++; orphaned = orphaned | taken[me]; taken[me] = 0; given = 0; got = 0; left = 0 }; goto again
  fi
}

/* All of it, or the first. */
inline some(all, what) {
  if
  :: what = all
  :: all == BOTH -> what = 1
  fi
}

active [2] proctype Taker() {
  byte me = _pid, given, got, left;
#ifdef NO_LOCK
  byte seen;
#endif
again:
  if
  :: isOver -> goto stop
  /* What waits in PostgreSQL. */
  :: atomic { ready != 0 -> got = ready; ready = 0; claim(got); got = 0 }; goto again
#ifdef TAKE_APART
  :: atomic { waiting != 0 -> some(waiting, given); waiting = waiting & ~given };
     mayDie();
     taken[me] = given
#else
  :: atomic { waiting != 0 -> some(waiting, given); waiting = waiting & ~given; taken[me] = given }
#endif
  fi;
  mayDie();
#ifdef NO_LOCK
  atomic { left = (isThere -> given & ~done : 0); seen = done };
#endif
  atomic {
#ifdef NO_LOCK
    skip;
#else
#ifdef NO_BIT_CHECK
    left = given;
#else
    left = (isThere -> given & ~done : 0);
#endif
#endif
    got = left;
    if
    :: got == BOTH && !hasLeft -> hasLeft = true; got = 1
    :: true
    fi;
    left = left & ~got;
#ifndef BIT_BEFORE_CLAIM
    claim(got);
#endif
#ifndef BIT_AFTER_CLAIM
#ifdef NO_LOCK
    set(seen | got);
    seen = 0
#else
    set(done | got)
#endif
#endif
    ;
    given = 0
#ifndef BIT_AFTER_CLAIM
#ifndef BIT_BEFORE_CLAIM
    ;
    got = 0
#endif
#endif
  };
#ifdef BIT_AFTER_CLAIM
  mayDie();
  atomic { set(done | got) };
#endif
#ifdef BIT_BEFORE_CLAIM
  mayDie();
  atomic { claim(got) };
#endif
  mayDie();
  atomic {
    taken[me] = 0;
#ifndef LEFT_DROPPED
    waiting = waiting | left;
#endif
    given = 0; got = 0; left = 0
  };
  goto again;
stop:
}

/* As a statement does: the rows that it saw when it began, then the handoff under its lock. Who finds neither has not cancelled it, and says so. */
active proctype Other() {
  byte one;
again:
  if
  :: atomic { others < MOST_OTHERS -> others++; one = 1 }
  :: atomic { others < MOST_OTHERS -> others++; one = 2 }
  :: goto stop
  fi;
  if
  :: atomic { ready & one -> ready = ready & ~one; assert((one & claimed) == 0); ended = ended | one }; goto next
  :: skip
  fi;
  if
#ifdef CANCEL_APART
  :: isThere && !(done & one) -> atomic { assert((one & claimed) == 0); ended = ended | one; set(done | one) }
#else
  :: atomic { isThere && !(done & one) -> assert((one & claimed) == 0); ended = ended | one;
#ifndef CANCEL_WITHOUT_BIT
       set(done | one)
#endif
     }
#endif
  :: atomic { isThere && !(done & one) -> ready = ready | one;
#ifndef MOVE_WITHOUT_BIT
       set(done | one)
#endif
     }
  :: skip
  fi;
next:
  one = 0;
  goto again;
stop:
}

active proctype Keeper() {
  byte open;
  do
#ifndef NO_RESTORE
  :: atomic { orphaned != 0 -> waiting = waiting | orphaned; orphaned = 0 }
  :: atomic { taken[0] != 0 && early < MOST_EARLY -> early++; waiting = waiting | taken[0]; taken[0] = 0 }
  :: atomic { taken[1] != 0 && early < MOST_EARLY -> early++; waiting = waiting | taken[1]; taken[1] = 0 }
#endif
  :: atomic { isThere && !mark -> open = BOTH & ~done };
     atomic { waiting = (mark -> waiting : waiting | open); mark = true; open = 0 }
  :: isOver -> break
  od
}

/* Because Redis would not have it, or to leave Redis; or never. */
active proctype Home() {
  if
  :: atomic { isThere ->
#ifdef HOME_ALL
       ready = BOTH;
#else
       ready = ready | (BOTH & ~done);
#endif
#ifndef HOME_WITHOUT_ROW
       isThere = false
#endif
     }
  :: skip
  fi
}

active proctype Faults() {
  if
  :: atomic { waiting = 0; taken[0] = 0; taken[1] = 0; orphaned = 0; mark = false }
  :: atomic { waiting = BOTH; taken[0] = 0; taken[1] = 0; orphaned = 0; mark = true }
  :: skip
  fi
}

#ifdef ENDS
ltl ends { <> isOver }
#endif
