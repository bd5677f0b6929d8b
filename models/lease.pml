/*
 * A claim and its lease: who holds a notification, and who only thinks so.
 *
 * Worker: src/queue/postgres/claim-statement.ts, leases.ts (extend), settle.ts. Sweeper: leases.ts (sweep). Each atomic step is one statement, under the
 * lock of the claim's row. Between two steps anybody may pause for as long as he likes, or die; a lease may run out at any time.
 *
 * It holds that the notification is in one place at each instant: it waits, is in one claim, or has ended; that only who holds the claim changes
 * anything; that nobody loses a lease that has not run out; and that everything ends.
 *
 * Bounded: one notification, two workers, two sweepers, two attempts, two leases that run out under a living holder, two deaths, two extensions.
 *
 * Rules, and what breaks without:
 * rule CLAIM_APART: who claims looks and takes in one statement, under the row's lock | two claims hold the same notification
 * rule NO_TOKEN_ON_SETTLE: a settlement names the token of its claim | who lost the lease settles what another holds
 * rule CHECK_APART: the token is asked for under the lock of the row that is changed | a sweep between asking and writing goes unseen
 * rule SAME_TOKEN: a sweep gives the claim a new token | who lost the lease settles what the sweeper holds
 * rule NO_TOKEN_ON_EXTEND: an extension names the token of its claim | who lost the lease believes that he holds it
 * rule SWEEP_EARLY: only a lease that has run out is taken over | a worker in good time loses its claim
 * rule NO_SWEEP: a lease that has run out is taken over | what a worker died with never ends
 */

#define ATTEMPTS 2
#define MOST_LATE 2
#ifdef QUICK
#define MOST_DEATHS 1
#define MOST_EXTENSIONS 1
#else
#define MOST_DEATHS 2
#define MOST_EXTENSIONS 2
#endif

bool waits = true;
bool over;
byte claims;   /* rows that hold it */
byte token;    /* of the claim; 0 is none */
bool isLate;   /* its lease has run out */
byte newest;   /* the sequence of tokens */
byte attempts;
byte lates, deaths, extensions;

/* What nobody in the system knows: who holds it in truth, whether he lives, and which leases ever ran out. */
byte holder;
bool isDead;
byte ranOut;

#define inOnePlace() assert(waits + claims + over == 1)

inline hold() {
  newest++;
  token = newest;
  mine = newest;
  isLate = false;
  isDead = false;
  holder = _pid
}

inline mayDie(again) {
  if
  :: skip
  :: atomic { deaths < MOST_DEATHS -> deaths++; isDead = (holder == _pid -> true : isDead); mine = 0 }; goto again
  fi
}

/* Tried again, or ended. */
inline write() {
  assert(holder == _pid);
  holder = 0;
  token = 0;
  claims--;
  if
  :: attempts < ATTEMPTS -> waits = true
  :: over = true
  fi;
  inOnePlace()
}

inline settle() {
#ifdef CHECK_APART
  if
  :: token == mine -> atomic { write() }
  :: else
  fi
#else
  atomic {
    if
#ifdef NO_TOKEN_ON_SETTLE
    :: token != 0 -> write()
#else
    :: token == mine -> write()
#endif
    :: else -> assert(ranOut & (1 << mine))
    fi
  }
#endif
}

active [2] proctype Worker() {
  byte mine;
again:
  mine = 0;
  if
  :: over -> goto stop
#ifdef CLAIM_APART
  :: waits -> atomic { waits = false; claims++; attempts++; hold(); inOnePlace() }
#else
  :: atomic { waits -> waits = false; claims++; attempts++; hold(); inOnePlace() }
#endif
  fi;
  mayDie(again);
  do
  :: atomic {
       extensions < MOST_EXTENSIONS -> extensions++;
       if
#ifdef NO_TOKEN_ON_EXTEND
       :: token != 0 && !isLate -> assert(holder == _pid)
#else
       :: token == mine && !isLate -> assert(holder == _pid)
#endif
       :: else -> goto again
       fi
     }
  :: break
  od;
  mayDie(again);
  settle();
  goto again;
stop:
}

#ifndef NO_SWEEP
active [2] proctype Sweeper() {
  byte mine;
again:
  mine = 0;
  if
  :: over -> goto stop
#ifdef SWEEP_EARLY
  :: atomic { token != 0 && newest < 5 ->
#else
  :: atomic { token != 0 && isLate ->
#endif
       hold();
#ifdef SAME_TOKEN
       newest--;
       token = newest;
       mine = newest
#endif
     }
  fi;
  mayDie(again);
  settle();
  goto again;
stop:
}
#endif

active proctype Clock() {
  do
  :: atomic { token != 0 && !isLate && (lates < MOST_LATE || isDead) ->
       lates = (isDead -> lates : lates + 1);
       isLate = true;
       ranOut = ranOut | (1 << token)
     }
  :: over -> break
  od
}

#ifdef ENDS
ltl ends { <> over }
#endif
