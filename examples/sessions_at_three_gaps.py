"""Tasks, visits and days of users: sessions with three gaps from the same slices."""

import muntin as mt
from muntin import aggregates as a
from muntin import windows as w

sessions = (
    mt.windows(task=w.session(5), visit=w.session(30), day=w.session(480))  # minutes
    .aggregate(clicks=a.count(), landing=a.first("page"), exit=a.last("page"))
    .by("user")
    .on("minute")
)
clicks = {
    "minute": [0, 3, 20, 21, 150, 1, 40],
    "user": ["ada", "ada", "ada", "ada", "ada", "bo", "bo"],
    "page": ["home", "search", "item", "cart", "home", "home", "help"],
}

for row in sorted(sessions.run(clicks).to_pylist(), key=lambda row: (row["user"], row["window"]["start"])):
    window = f"{row['window']['start']:3} to {row['window']['end']:3}"
    pages = f"{row['clicks']} clicks, {row['landing']} to {row['exit']}"
    print(f"{row['user']:3} {row['window_name']:5} {window}: {pages}")

# Output:
# ada task    0 to   8: 2 clicks, home to search
# ada visit   0 to  51: 4 clicks, home to cart
# ada day     0 to 630: 5 clicks, home to home
# ada task   20 to  26: 2 clicks, item to cart
# ada task  150 to 155: 1 clicks, home to home
# ada visit 150 to 180: 1 clicks, home to home
# bo  task    1 to   6: 1 clicks, home to home
# bo  visit   1 to  31: 1 clicks, home to home
# bo  day     1 to 520: 2 clicks, home to help
# bo  task   40 to  45: 1 clicks, help to help
# bo  visit  40 to  70: 1 clicks, help to help
