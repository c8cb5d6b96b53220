"""Methods on the dual of losses whose dual points are bounded.

`dual_coordinate_descent` takes steps along single coordinates, on the rows of the data in
`dual_rows`; `decomposition` along blocks of them, on a kernel matrix.
"""
