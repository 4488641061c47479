"""Names that users bring from Spark, Flink, Beam, pandas, polars and SQL, and what to write instead.

The tables serve only the error messages for names that do not exist. They map what to write (a name of ours,
or code) to the names of other systems. Case and underscores do not count, so one entry covers `group_by`,
`groupBy` and `groupby`.
"""

from __future__ import annotations

import difflib
import importlib.util
from collections.abc import Iterable, Mapping

from muntin.errors import UnknownNameError

__all__ = [
    "AGGREGATES", "ARGUMENTS", "PACKAGE", "POLICIES", "QUERY", "WINDOWS", "answer", "hint",
    "plain", "refuse_submodule", "unknown",
]  # fmt: skip

AGGREGATES = {
    "approx_count_distinct": "approxdistinct approxnunique approxcountunique hll hllsketch hyperloglog",
    "approx_quantile": "percentileapprox approxpercentile approxmedian approxquantiles kll tdigest",
    "arg_max": "maxby idxmax",
    "arg_min": "minby idxmin",
    "bloom": "bloomfilter bloomfilteragg",
    "collect": "collectlist arrayagg list tolist listagg implode array",
    "collect_set": "collectunique unique toset distinct arrayunique",
    "concat": "stringagg groupconcat strconcat strjoin join",
    "correlation": "corr pearson",
    "count": "len size length n rows",
    "count_distinct": "nunique countunique distinctcount uniquecount uniq cardinality",
    "count_if": "countwhere countfilter",
    "count_min": "countminsketch",
    "covariance": "cov covar covarsamp covarpop",
    "every": "all booland",
    "first": "firstvalue earliest head open",
    "frequent_items": "heavyhitters approxtopk valuecounts",
    "geometric_mean": "gmean geomean",
    "histogram": "hist histogramnumeric",
    "kurtosis": "kurt",
    "last": "lastvalue latest tail close",
    "max": "maximum greatest high",
    "mean": "avg average",
    "min": "minimum least low",
    "mode": "mostcommon mostfrequent",
    "nth": "nthvalue",
    "percentiles": "quantiles",
    "quantile": "percentile percentilecont percentiledisc",
    "skewness": "skew",
    "some": "any boolor",
    "stddev": "std stdev stddevsamp stddevpop standarddeviation",
    "sum": "total",
    "theta": "thetasketch",
    "top_k": "top nlargest largest topn",
    "variance": "var varsamp varpop",
    "weighted_mean": "wavg weightedavg weightedaverage vwap",
    "a.aggregate(column, lift=..., combine=...)": "agg udaf udf reduce fold aggregator combinefn apply",
    "a.aggregate(column, lift=float, combine=operator.mul)": "product prod",
    "a.first, a.max, a.min and a.last of one column": "ohlc",
    "a.collect_set(column), and add up the values of its list": "sumdistinct",
}
"""Our names are those of `muntin.aggregates`."""

WINDOWS = {
    "calendar": "civil datetrunc",
    "count": "countwindow countwindows rows row tuples",
    "cumulate": "cumulative cumulatewindow",
    "discretize": "userdefined custom",
    "fixed_band": "band between",
    "landmark": "expanding growing unbounded",
    "last": "lastn trailing latest",
    "punctuation": "punctuated marker",
    "session": "sessions sessionwindow sessionwindows sessionize",
    "slide_by_tuple": "rolling rollingwindow groupbyrolling",
    "sliding": "hop hopping hoppingwindow hoppingwindows slide slidingwindow slidingwindows overlapping",
    "tumbling": "tumble tumblingwindow tumblingwindows fixed fixedwindow fixedwindows window interval "
    "resample grouper groupbydynamic timewindow bucket timebucket datebin",
    'w.calendar("day")': "day days daily",
    'w.calendar("week")': "week weeks weekly",
    'w.calendar("month")': "month months monthly",
    'w.calendar("year")': "year years yearly",
    'w.tumbling("1 second")': "second seconds",
    'w.tumbling("1 minute")': "minute minutes",
    'w.tumbling("1 hour")': "hour hours hourly",
    "w.fixed_band(start, length) with a length that covers the stream": "global globalwindow globalwindows",
}
"""Our names are those of `muntin.windows`."""

QUERY = {
    '.by("shop")': "groupby keyby partitionby bykey key per groupbykey over",
    '.aggregate(total=a.sum("amount"))': "agg summarize summarise select compute reduce combine apply",
    '.on("ts"), and query.operator(watermark_lag="10 seconds") for a watermark that follows the data': (
        "withwatermark watermark eventtime orderby sortby timestamp timecolumn indexcolumn"
    ),
    '.on("ts", allowed_lateness="1 hour")': "withallowedlateness grace lateness",
    '.on("ts", early=mt.every("10 seconds"))': "trigger triggering",
    '.on("ts", late="route")': "sideoutputlatedata latedata",
    'a.sum("amount", filter="amount > 0")': "filter where having",
    ".run(table)": "collect execute fit toarrow totable topandas evaluate",
    ".operator(), and .process(batch) of that": "process push stream start",
    "events.transform(query) on the Spark DataFrame": "transform",
    'mt.windows(minute=w.tumbling("1 minute"), ...), which takes all windows at once': (
        "window tumbling sliding session addwindow"
    ),
    ".to_toml()": "save write dump tofile",
    ".explain()": "plan describe show",
}
"""Methods of queries."""

PACKAGE = {
    'mt.load("query.toml")': "read readtoml fromtoml loadquery",
    'mt.windows(minute=w.tumbling("1 minute"))': "query stream",
    'mt.col("amount")': "field column expr",
    'early=mt.every("10 seconds") in .on()': "trigger afterprocessingtime",
    "emit=mt.on_close() in .on()": "afterwatermark",
    "early=mt.each_batch() in .on()": "onbatch",
}
"""Names of a package."""

POLICIES = {
    "allowed_lateness": "lateness withallowedlateness grace graceperiod latetolerance maxlateness",
    "early": "trigger updates",
    "late": "latedata sideoutput lateoutput latetuples",
    "bad": "badrecords invalid malformed",
    "on_error": "errors error onfailure",
    "idle_after": "idle idleness idletimeout withidleness timeout",
    "forget_keys_after": "ttl statettl keyttl retention",
    "max_ahead": "future maxfuture ahead",
    "time": "column timestamp ts eventtime timecolumn indexcolumn",
    'query.operator(watermark_lag="10 seconds"), or on Spark transform(query, watermark="10 seconds")': (
        "watermark watermarklag delay maxoutoforderness outoforderness withwatermark maxdelay"
    ),
    '.by("shop")': "by key keys groupby partitionby keyby",
    'allowed_lateness="1 hour": a window that changes in that time is emitted again, as a whole': (
        "accumulation accumulationmode outputmode"
    ),
}
"""Arguments of `.on()`."""

ARGUMENTS = {
    "length": "size duration width windowsize windowduration",
    "every": "slide hop period step slideduration",
    "gap": "timeout gapduration inactivity",
    "tz": "timezone zone",
    "offset": "starttime origin",
    "column": "col field name value values on of input expr",
    "q": "percentage percentile fraction quantile probability p",
    "by": "key orderby order sortby",
    "n": "size count k rows",
    "filter": "where condition predicate having",
    "edges": "breaks boundaries",
    "weight": "weights",
    "schema": "types dtypes dtype",
    "watermark_lag": "watermark delay lag",
    "threads": "nthreads workers njobs parallelism",
    "source": "data df frame table",
}
"""Arguments of other functions."""


def plain(name: str) -> str:
    """A name without what differs between systems: case and underscores."""
    return name.replace("_", "").lower()


def refuse_submodule(package: str, name: str) -> None:
    """A plain AttributeError for a module that is not imported yet: `from package import module` asks so."""
    if importlib.util.find_spec(f"{package}.{name}") is not None:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")


def answer(name: str, known: Iterable[str], foreign: Mapping[str, str], prefix: str = "") -> str:
    """What the user may have meant, as code: a name that exists, or what replaces a foreign one; else empty.

    >>> answer("avg", ["mean", "sum"], AGGREGATES, "a."), answer("summ", ["mean", "sum"], AGGREGATES, "a.")
    ('a.mean', 'a.sum')
    """
    own = {plain(one): f"{prefix}{one}" for one in known}
    answers = dict(own)
    for write, words in foreign.items():
        if plain(write) in own or not write.isidentifier():  # a name of ours that is known here, or code
            answers |= {word: own.get(plain(write), write) for word in words.split() if word not in own}
    given = plain(name)
    if given not in answers:
        # Our own names first: a foreign one may be more alike by chance.
        close = difflib.get_close_matches(given, own, 1, 0.75) or difflib.get_close_matches(given, answers, 1)
        given = close[0] if close else ""
    return answers.get(given, "")


def hint(name: object, known: Iterable[str], foreign: Mapping[str, str]) -> str:
    """A question that names what the user may have meant, after a space; empty if nothing is like it.

    >>> hint("grace", ["time", "allowed_lateness"], POLICIES)
    ' Did you mean "allowed_lateness"?'
    """
    meant = answer(name, known, foreign) if isinstance(name, str) else ""
    if not meant.isidentifier():
        return f" Write {meant}." if meant else ""
    return f' Did you mean "{meant}"?'


def unknown(
    what: str, name: str, known: Iterable[str], foreign: Mapping[str, str], prefix: str = ""
) -> UnknownNameError:
    """The error for an attribute that `what` does not have, with what to write instead.

    >>> print(unknown("a query", "groupBy", ["by", "on"], QUERY, "."))
    a query has no "groupBy"; write .by("shop")
    """
    names = list(known)
    write = answer(name, names, foreign, prefix)
    advice = f"write {write}" if write else f"it has {', '.join(sorted(names))}"
    # With its own `obj`, Python would add a suggestion of another name to the message.
    return UnknownNameError(f'{what} has no "{name}"; {advice}', name=name, obj=None)
