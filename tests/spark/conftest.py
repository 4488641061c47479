"""One Spark session for all tests of this folder, and beside it those that start processes of their own."""

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share the session go to one worker, those that start their own processes to another."""
    for item in items:
        shared = "spark" in getattr(item, "fixturenames", ())
        item.add_marker(pytest.mark.xdist_group("session" if shared else "processes"))
