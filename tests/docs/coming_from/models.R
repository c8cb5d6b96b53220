# `Rscript models.R` in this folder fits what the pages of docs/coming-from say of glmnet and e1071, and
# writes models.json, which tests/docs/test_coming_from.py compares with. It needs both packages
# (Debian: r-cran-glmnet, r-cran-e1071).
d <- read.csv("data.csv")
x <- as.matrix(d[, paste0("x", 0:5)])
y <- d$y
k <- factor(d$class)
w <- d$weight
o <- d$offset
f <- c(1, 2, 0, 1, 1, 3)
lambda <- c(0.15, 0.1, 0.06, 0.03, 0.02, 0.01)
glmnet::glmnet.control(fdev = 0, devmax = 1, epsnr = 1e-12)  # no early end
glmnet <- function(...) glmnet::glmnet(..., thresh = 1e-16, maxit = 1e7)
cv.glmnet <- function(...) glmnet::cv.glmnet(..., thresh = 1e-16, maxit = 1e7, grouped = TRUE)
svm <- function(...) e1071::svm(..., tolerance = 1e-8)

# the first cell, behind its number, of each row that begins with a call of one of these functions
pages <- file.path("../../../docs/coming-from", c("glmnet.md", "other-r.md"))
rows <- grep("^\\|( [0-9]+ \\|)? `(glmnet|cv\\.glmnet|svm|coef|predict)\\(", unlist(lapply(pages, readLines)),
             value = TRUE)
calls <- sub("^\\|( [0-9]+ \\|)? `([^`]*)`.*$", "\\2", rows)

fit <- glmnet(x, y, "binomial", lambda = lambda)
cv <- cv.glmnet(x, y, family = "binomial", lambda = lambda, foldid = d$fold)
numbers <- function(value) {
  if (inherits(value, "svm")) {  # decision values, positive for the class 1
    sign <- if (value$labels[1] == 2) 1 else -1
    return(sign * as.vector(attr(predict(value, x, decision.values = TRUE), "decision.values")))
  }
  if (inherits(value, "cv.glmnet")) return(c(value$lambda.min, value$lambda.1se))
  if (inherits(value, "multnet")) return(t(sapply(coef(value), as.vector)))
  if (inherits(value, "glmnet")) return(as.vector(coef(value)))
  if (is.list(value)) value <- t(sapply(value, as.vector))
  value <- as.vector(value)
  if (is.character(value)) as.numeric(value) else value
}
json <- function(v) {
  text <- trimws(format(v, digits = 12))
  if (is.matrix(v)) return(paste0("[", paste(apply(v, 1, json), collapse = ",\n  "), "]"))
  paste0("[", paste(text, collapse = ", "), "]")
}
out <- sapply(calls, function(each) json(numbers(eval(parse(text = each)))))
quoted <- gsub("\"", "\\\\\"", calls)
extra <- c(
  default_lambda = json(max(glmnet(x, y, "binomial")$lambda)),
  dev_ratio = json(fit$dev.ratio),
  df = json(fit$df),
  cv_mean = json(cv$cvm)
)
versions <- sapply(c("glmnet", "e1071"), function(p) as.character(packageVersion(p)))
writeLines(paste0("{\"R\": \"", getRversion(), "\",\n",
                  paste0("\"", names(versions), "\": \"", versions, "\"", collapse = ",\n"), ",\n",
                  paste0("\"", names(extra), "\": ", extra, collapse = ",\n"), ",\n",
                  paste0("\"", quoted, "\": ", out, collapse = ",\n"), "}"), "models.json")
