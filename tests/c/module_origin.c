/* A module whose library is beside it, found by $ORIGIN. */
#include <wirecall.h>

extern int beside(int value);

static void of_origin(wc_call *call, void *user) {
  (void)user;
  wc_result_i64(call, beside(2));
}
static int load(wc_server *server) { return wc_server_method(server, "origin.beside", of_origin, NULL); }
WC_MODULE = {sizeof(wc_module), WC_ABI_VERSION, load};
