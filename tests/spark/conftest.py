"""One Spark session for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import muntin as mt


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = mt.spark.session(
        {
            "spark.sql.session.timeZone": "UTC",
            # Small data: compiling a query takes longer than running it.
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.driver.memory": "2g",
        }
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
