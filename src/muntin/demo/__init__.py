"""`muntin demo`: the first ten seconds, without Java; `muntin demo --spark`: a year of flights on Spark."""
