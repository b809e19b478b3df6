/* A program in C that knows of wirecall what pkg-config says. */
#include <string.h>
#include <wirecall.h>

static void add(wc_call *call, void *user) {
  int64_t a, b;
  (void)user;
  if (wc_param_i64(call, 0, "a", &a) && wc_param_i64(call, 1, "b", &b)) wc_result_i64(call, a + b);
}

int main(void) {
  static const char request[] = "{\"jsonrpc\":\"2.0\",\"method\":\"add\",\"params\":[1,2],\"id\":1}";
  const char *reply;
  size_t size;
  wc_server *server = wc_server_new(NULL);
  int right = server != NULL && wc_abi_version() >= WC_ABI_VERSION &&
              wc_server_method(server, "add", add, NULL) == WC_OK &&
              wc_server_handle(server, request, sizeof request - 1, &reply, &size) == WC_OK &&
              strcmp(reply, "{\"jsonrpc\":\"2.0\",\"result\":3,\"id\":1}") == 0;
  wc_server_free(server);
  return right ? 0 : 1;
}
