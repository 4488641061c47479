"""A window of your own: windows of 1, 2, 4, ... tuples, together with a built-in one."""

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w


class Doubling(w.ForwardContextFree):
    """Windows of 1, 2, 4, ... tuples."""

    def initial_state(self):
        """The size of the next window, and the tuples that the open one still takes."""
        return {"size": 1, "left": 0}

    def observe(self, state, record):
        """The new state, how many windows begin with this record, how many end before it."""
        if state["left"]:
            return {**state, "left": state["left"] - 1}, 0, 0
        return {"size": 2 * state["size"], "left": state["size"] - 1}, 1, 1


query = mt.windows(doubling=Doubling(), ten=w.tumbling(10)).aggregate(values=a.collect("v")).on("t")
for row in query.run({"t": [1, 4, 6, 9, 11, 14, 22], "v": [3, 1, 4, 1, 5, 9, 2]}).to_pylist():
    print(f"{row['window_name']:8} [{row['window']['start']}, {row['window']['end']}) {row['values']}")

# Output:
# doubling [1, 4) [3]
# doubling [4, 9) [1, 4]
# ten      [0, 10) [3, 1, 4, 1]
# ten      [10, 20) [5, 9]
# doubling [9, 23) [1, 5, 9, 2]
# ten      [20, 30) [2]
