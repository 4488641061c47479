"""The state as bytes: tables of numbers with checked roles, behind a header and a checksum."""
