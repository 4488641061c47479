"""`muntin demo`: a year of flights through Spark; `muntin demo --embedded`: a small shop, without Spark."""
