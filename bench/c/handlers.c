#include "handlers.h"

void bench_subtract(wc_call *call, void *user) {
  int64_t minuend, subtrahend;
  (void)user;
  if (wc_param_i64(call, 0, "minuend", &minuend) && wc_param_i64(call, 1, "subtrahend", &subtrahend))
    wc_result_i64(call, minuend - subtrahend);
}

void bench_echo(wc_call *call, void *user) {
  const char *text;
  size_t size;
  (void)user;
  if (wc_param_text(call, 0, "text", &text, &size)) wc_result_text(call, text, size);
}

void bench_sum(wc_call *call, void *user) {
  wc_cursor values = WC_CURSOR_INIT;
  double value, sum = 0;
  (void)user;
  if (!wc_param_array(call, 0, "values", &values)) return;
  while (wc_cursor_next(&values)) {
    if (!wc_cursor_f64(&values, &value)) return;
    sum += value;
  }
  wc_result_f64(call, sum);
}
