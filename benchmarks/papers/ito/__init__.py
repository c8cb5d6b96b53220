"""Tables and figures of Ito, Takeda, Toh (2017); `tables` has them all."""
