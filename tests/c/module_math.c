/* A module. Compiled with NEWER it is for a version that is yet to come; with FAILS it cannot be loaded. */
#include <wirecall.h>

static void add(wc_call *call, void *user) {
  int64_t a, b;
  (void)user;
  if (wc_param_i64(call, 0, "a", &a) && wc_param_i64(call, 1, "b", &b)) wc_result_i64(call, a + b);
}

static int load(wc_server *server) {
#ifdef FAILS
  return wc_server_method(server, "rpc.add", add, NULL);
#else
  return wc_server_method(server, "math.add", add, NULL);
#endif
}

#ifdef NEWER
WC_MODULE = {sizeof(wc_module), WC_ABI_VERSION + 1, load};
#else
WC_MODULE = {sizeof(wc_module), WC_ABI_VERSION, load};
#endif
