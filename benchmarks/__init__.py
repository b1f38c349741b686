"""The benchmark of `make bench`: this project beside other replay memories, in one interleaved run."""
