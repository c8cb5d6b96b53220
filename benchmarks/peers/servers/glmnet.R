# glmnet on the data in a folder; the protocol is that of peers/remote.py.

suppressMessages(library(glmnet))
# fdev, devmax: no path ends before its last strength
glmnet.control(fdev = 0, devmax = 1)
MOST_PASSES <- 1e9  # never binds

folder <- commandArgs(TRUE)[1]

doubles <- function(name, n) readBin(file.path(folder, name), "double", n)
integers <- function(name, n) readBin(file.path(folder, name), "integer", n)

dense <- function(rows, columns) {
  x <<- matrix(doubles("design", rows * columns), rows, columns)
  unlink(file.path(folder, "design"))
  c(0, 0)
}

sparse <- function(rows, columns, stored) {
  x <<- sparseMatrix(
    i = integers("indices", stored), p = integers("indptr", columns + 1),
    x = doubles("data", stored), dims = c(rows, columns), index1 = FALSE
  )
  unlink(file.path(folder, c("data", "indices", "indptr")))
  c(0, 0)
}

repeats <- 1

# What a call returns, and its seconds, wall and CPU: the mean of as many as asked for.
clocked <- function(call) {
  gc()
  before <- proc.time()
  for (k in seq_len(repeats)) found <- call()
  spent <- (proc.time() - before) / repeats
  list(found = found, spent = c(spent[["elapsed"]], spent[["user.self"]] + spent[["sys.self"]]))
}

settings <- function(l1_ratio, alphas, thresh, intercept, newton) {
  list(
    family = "binomial", alpha = l1_ratio, lambda = doubles("alphas", alphas), thresh = thresh,
    standardize = FALSE, intercept = intercept == 1, maxit = MOST_PASSES, type.logistic = newton
  )
}

# Coefficients (strengths x features) and intercepts, after those of the models before.
append_models <- function(model, strengths) {
  if (length(model$lambda) < strengths) stop("the path ended after ", length(model$lambda))
  for (name in c("coefs", "intercepts")) {
    values <- if (name == "coefs") as.matrix(model$beta) else model$a0
    target <- file(file.path(folder, name), "ab")
    writeBin(as.double(values), target)
    close(target)
  }
}

path <- function(l1_ratio, alphas, tol, intercept, newton) {
  y <- doubles("labels", nrow(x))
  chosen <- settings(l1_ratio, alphas, tol, intercept, newton)
  timed <- clocked(function() do.call(glmnet, c(list(x, y), chosen)))
  append_models(timed$found, alphas)
  timed$spent
}

# cv.glmnet keeps the predictions of its folds but not their coefficients: the same calls again,
# outside the clock, give these, and have to predict the same.
cv <- function(l1_ratio, alphas, tol, intercept, newton, folds) {
  y <- doubles("labels", nrow(x))
  fold <- doubles("folds", nrow(x)) + 1
  chosen <- settings(l1_ratio, alphas, tol, intercept, newton)
  call <- c(list(x, y, foldid = fold, keep = TRUE), chosen)
  timed <- clocked(function() do.call(cv.glmnet, call))
  found <- timed$found
  for (k in seq_len(folds)) {
    held <- fold == k
    model <- do.call(glmnet, c(list(x[!held, , drop = FALSE], y[!held]), chosen))
    again <- predict(model, x[held, , drop = FALSE])
    kept <- found$fit.preval[held, , drop = FALSE]
    same <- all.equal(as.numeric(again), as.numeric(kept), tolerance = 1e-12)
    if (!isTRUE(same)) stop("the folds were fitted otherwise: ", same)
    append_models(model, alphas)
  }
  append_models(found$glmnet.fit, alphas)
  timed$spent
}

# Paths of subsets of the rows, standardised each: the strength at which each feature enters (0:
# never), and its coefficient per standard deviation there.
subsets <- function(l1_ratio, alphas, tol, newton, count, size) {
  y <- doubles("labels", nrow(x))
  rows <- matrix(integers("rows", count * size), size, count)
  chosen <- settings(l1_ratio, alphas, tol, 1, newton)
  chosen$standardize <- TRUE
  timed <- clocked(function() lapply(seq_len(count), function(k) {
    own <- rows[, k] + 1
    do.call(glmnet, c(list(x[own, ], y[own]), chosen))
  }))
  target <- file(file.path(folder, "entries"), "wb")
  for (k in seq_len(count)) {
    beta <- as.matrix(timed$found[[k]]$beta)
    if (ncol(beta) < alphas) stop("a path ended after ", ncol(beta))
    used <- cbind(beta != 0, TRUE)
    first <- max.col(used, ties.method = "first")
    own <- x[rows[, k] + 1, ]
    spread <- sqrt(pmax(colMeans(own^2) - colMeans(own)^2, 0))
    size_there <- abs(cbind(beta, 0)[cbind(seq_along(first), first)]) * spread
    writeBin(as.double(c(first %% (alphas + 1), size_there)), target)
  }
  close(target)
  timed$spent
}

answer <- function(line) {
  words <- strsplit(line, " ", fixed = TRUE)[[1]]
  parts <- strsplit(words[-1], "=", fixed = TRUE)
  given <- lapply(parts, function(part) utils::type.convert(part[2], as.is = TRUE))
  names(given) <- vapply(parts, `[`, "", 1)
  repeats <<- if (is.null(given$times)) 1 else given$times
  given$times <- NULL
  unlink(file.path(folder, c("coefs", "intercepts")))
  do.call(get(words[1]), given)
}

commands <- file("stdin", "r")
while (length(line <- readLines(commands, n = 1)) > 0) {
  told <- tryCatch(
    paste(suppressWarnings(answer(line)), collapse = " "),
    error = function(e) paste("trouble", gsub("\n", " ", conditionMessage(e)))
  )
  cat(told, "\n", sep = "")
  flush(stdout())
}
