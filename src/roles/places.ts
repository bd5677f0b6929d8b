// Places for steps that are under way at once, as many as there are connections for them: whoever finds none waits here, for as
// long as it takes, and not in the pool, which would refuse it after a while. First come first served; but one place is only for
// those that somebody waits for.

export type Places = {
  /** Acts once there is a place. */
  take<Value>(isUrgent: boolean, act: () => Promise<Value>): Promise<Value>;
};

type Place = { isKept: boolean };
type Waiting = { isUrgent: boolean; go: (place: Place) => void };

export function createPlaces(count: number): Places {
  // The one that is kept stands first, so that it is taken first by those it is kept for.
  const free: Place[] = Array.from({ length: count }, (_, n) => ({ isKept: n === 0 }));
  const waiting: Waiting[] = [];
  const suits = (place: Place, isUrgent: boolean) => isUrgent || !place.isKept;

  async function enter(isUrgent: boolean): Promise<Place> {
    const at = free.findIndex((place) => suits(place, isUrgent));
    const [place] = at < 0 ? [] : free.splice(at, 1);
    return place ?? new Promise((go) => waiting.push({ isUrgent, go }));
  }

  function leave(place: Place): void {
    const at = waiting.findIndex(({ isUrgent }) => suits(place, isUrgent));
    const [next] = at < 0 ? [] : waiting.splice(at, 1);
    if (next) next.go(place);
    else if (place.isKept) free.unshift(place);
    else free.push(place);
  }

  return {
    async take(isUrgent, act) {
      const place = await enter(isUrgent);
      try {
        return await act();
      } finally {
        leave(place);
      }
    },
  };
}
