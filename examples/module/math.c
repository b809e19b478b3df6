/* A module: methods in a shared library, written against wirecall.h alone (docs/c.md "Modules"). host.cpp calls them in its
 * own process; `wirecall serve --module ./libmath.so` serves them to everybody. */
#include <wirecall.h>

static void add(wc_call *call, void *user) {
  int64_t a, b;
  (void)user;
  if (wc_param_i64(call, 0, "a", &a) && wc_param_i64(call, 1, "b", &b)) wc_result_i64(call, a + b);
}

static void sum(wc_call *call, void *user) {
  wc_cursor values = WC_CURSOR_INIT;
  double value, total = 0;
  (void)user;
  if (!wc_param_array(call, 0, "values", &values)) return;
  while (wc_cursor_next(&values)) {
    if (!wc_cursor_f64(&values, &value)) return;
    total += value;
  }
  wc_result_f64(call, total);
}

static int load(wc_server *server) {
  int status = wc_server_method(server, "math.add", add, NULL);
  return status != WC_OK ? status : wc_server_method(server, "math.sum", sum, NULL);
}

WC_MODULE = {sizeof(wc_module), WC_ABI_VERSION, load};
