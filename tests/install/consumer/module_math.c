#include <wirecall.h>

static void add(wc_call *call, void *user) {
  int64_t a, b;
  (void)user;
  if (wc_param_i64(call, 0, "a", &a) && wc_param_i64(call, 1, "b", &b)) wc_result_i64(call, a + b);
}

static int load(wc_server *server) { return wc_server_method(server, "math.add", add, NULL); }
WC_MODULE = {sizeof(wc_module), WC_ABI_VERSION, load};
