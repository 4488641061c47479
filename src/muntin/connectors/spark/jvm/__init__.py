"""Plans that run in the JVM: what Spark has itself, Spark does."""
