/*
 * Moving from one engine to another while notifications are accepted.
 *
 * Accept: carillon.accept() and queue_engine() in migrations/0041_engines.sql. Operator: src/steps/manage/move-queue.ts, begins a move and may abort it.
 * Keeper: queue_move_on(), a step of the move at a time, by whoever keeps house. The choice of where new work goes is one row under a lock of its own: shared by those who
 * accept, held alone by whoever changes the choice. The move is another row with a lock. Locks are kept until the transaction ends, and go when its process dies.
 *
 * Three ways: home (the target is PostgreSQL), forward (new work goes to the target at once, and what waits at the source follows) and drained first (new work
 * waits in PostgreSQL until workers have emptied the source). Once a move has ended, nobody looks at the place that it led away from.
 *
 * It holds that nothing is committed to a place that nobody looks at any more, that nothing is claimed twice, that nobody waits for ever, and that everything
 * that was accepted ends.
 *
 * Bounded: two transactions that accept one notification each, one move, one abort, one death of the keeper. Handoffs and claims are single steps: handoff.pml
 * and take.pml have their pieces.
 *
 * Rules, and what breaks without:
 * rule NO_SHARED_LOCK: who accepts holds the lock of the choice | one with an old view commits to where nobody looks
 * rule LET_GO_EARLY: he holds it until he has committed | one with an old view commits to where nobody looks
 * rule READ_FIRST: he reads the choice when he has the lock, not before | he waits for the lock with an old view, and goes by it
 * rule FLIP_SHARED: who changes the choice holds the lock alone | it changes under those who go by the old one
 * rule ABORT_ANYWAY: an abort asks under the lock of the move whether it is still under way | it has ended, and new work goes to a source that nobody looks at
 * rule ABORT_CHOOSES_FIRST: an abort takes the lock of the move before that of the choice, as the keeper does | each waits for the other
 * rule ABORT_LEAVES: after an abort the target is emptied like a source before | what went there meanwhile never ends
 * rule DONE_UNASKED: a move has ended only when nothing is left where it led away from | what is left there never ends
 * rule ONE_PLACE: workers take from wherever something may be, not only from where new work goes | what waits in the other place never ends
 * rule MOVE_APART: what is moved leaves the source in the same statement | it is claimed from both places
 */

#define SOURCE 0
#define HOME 1
#define TARGET 2

#define BY_HOME 0
#define FORWARD 1
#define DRAINED_FIRST 2

#define STILL 0
#define MOVING 1
#define ABORTING 2
#define DONE 3
#define ABORTED 4

#define MANY 2

/* PostgreSQL. */
byte choice = SOURCE;
byte shared;          /* how many hold the lock of the choice, shared */
bool isAlone;         /* somebody holds it alone */
byte state = STILL;
byte way;
bool isLocked;        /* the row of the move */
byte places[MANY];    /* where a notification waits: a bit for each place */

/* What nobody in the system knows. */
bool isAccepted[MANY];
byte claims[MANY];
bool isLeft[3];       /* nobody looks there any more */
bool hasDied;

#define at(place) (1 << place)
#define isAnyAt(place) ((places[0] | places[1]) & at(place))
#define isOver ((state == DONE || state == ABORTED) && isAccepted[0] && isAccepted[1] && !(places[0] | places[1]))
#ifdef ONE_PLACE
#define isTaken(place) (place == choice || place == HOME)
#else
#define isTaken(place) (!isLeft[place])
#endif

active [MANY] proctype Accept() {
  byte view;
#ifdef READ_FIRST
  view = choice;
#endif
#ifndef NO_SHARED_LOCK
  atomic { !isAlone -> shared++ };
#endif
#ifndef READ_FIRST
  view = choice;
#endif
#ifdef LET_GO_EARLY
  shared--;
#endif
  atomic {
    assert(!isLeft[view]);
    places[_pid] = at(view);
    isAccepted[_pid] = true;
    view = 0;
#ifndef NO_SHARED_LOCK
#ifndef LET_GO_EARLY
    shared--
#endif
#endif
  }
}

#define take(n, place) atomic { (places[n] & at(place)) && isTaken(place) -> places[n] = places[n] & ~at(place); claims[n]++; assert(claims[n] == 1) }

active proctype Worker() {
  do
  :: take(0, SOURCE)
  :: take(0, HOME)
  :: take(0, TARGET)
  :: take(1, SOURCE)
  :: take(1, HOME)
  :: take(1, TARGET)
  :: isOver -> break
  od
}

inline lockChoice() {
#ifdef FLIP_SHARED
  atomic { !isAlone -> isAlone = true }
#else
  atomic { !isAlone && shared == 0 -> isAlone = true }
#endif
}

inline lockMove() {
  atomic { !isLocked -> isLocked = true }
}

active proctype Operator() {
  if
  :: way = BY_HOME
  :: way = FORWARD
  :: way = DRAINED_FIRST
  fi;
  lockChoice();
  atomic { choice = (way == FORWARD -> TARGET : HOME); state = MOVING; isAlone = false };
  if
  :: goto stop
  :: state == MOVING
  :: state == DONE -> goto stop
  fi;
#ifdef ABORT_CHOOSES_FIRST
  lockChoice();
  lockMove();
#else
  lockMove();
#ifndef ABORT_ANYWAY
  if
  :: state == MOVING
  :: else -> isLocked = false; goto stop
  fi;
#endif
  lockChoice();
#endif
  atomic {
#ifdef ABORT_CHOOSES_FIRST
    if
    :: state == MOVING -> choice = SOURCE; state = ABORTING
    :: else
    fi;
#else
    choice = SOURCE;
    state = ABORTING;
#endif
    isAlone = false;
    isLocked = false
  };
stop:
}

#define from (state == ABORTING -> TARGET : SOURCE)
#define to (state == ABORTING -> SOURCE : (way == BY_HOME -> HOME : TARGET))
#ifdef ABORT_LEAVES
#define isHandedOver (state == MOVING && way != DRAINED_FIRST)
#else
#define isHandedOver ((state == MOVING && way != DRAINED_FIRST) || (state == ABORTING && way != BY_HOME))
#endif
#ifdef DONE_UNASKED
#define isEmptied true
#else
#ifdef ABORT_LEAVES
#define isEmptied (state == ABORTING || !isAnyAt(from))
#else
#define isEmptied (!isAnyAt(from))
#endif
#endif

inline move(n) {
#ifdef MOVE_APART
  if
  :: places[n] & at(from) -> places[n] = places[n] | at(to); places[n] = places[n] & ~at(from)
  :: else
  fi
#else
  atomic {
    if
    :: places[n] & at(from) -> places[n] = at(to)
    :: else
    fi
  }
#endif
}

/* It looks again and again; a look that finds nothing to do changes nothing. */
active proctype Keeper() {
again:
  if
  :: isOver -> goto stop
  :: atomic { !isLocked && (state == MOVING || state == ABORTING) && (isEmptied || (isHandedOver && isAnyAt(from))) -> isLocked = true }
  fi;
  if
  :: isHandedOver -> move(0); move(1)
  :: else
  fi;
  if
  :: isEmptied && state == MOVING && way == DRAINED_FIRST ->
     lockChoice();
     if
     :: skip
     :: atomic { !hasDied -> hasDied = true; isAlone = false; isLocked = false }; goto again
     fi;
     atomic { choice = TARGET; state = DONE; isLeft[SOURCE] = true; isAlone = false; isLocked = false }
  :: atomic { isEmptied && state == MOVING && way != DRAINED_FIRST -> state = DONE; isLeft[SOURCE] = true; isLocked = false }
  :: atomic { isEmptied && state == ABORTING -> state = ABORTED; isLeft[TARGET] = true; isLocked = false }
  :: atomic { !isEmptied -> isLocked = false }
  :: atomic { !hasDied -> hasDied = true; isLocked = false }
  fi;
  goto again;
stop:
}

#ifdef ENDS
ltl ends { <> isOver }
#endif
