/* A module that uses its server for more than to add methods. */
#include <wirecall.h>

static void refused(wc_call *call, void *user) {
  (void)user;
  wc_result_i64(call, wc_last_status());
}

static int load(wc_server *server) {
  const char *reply;
  size_t size;
  int status = wc_server_method(server, "greedy.refused", refused, NULL);
  if (status != WC_OK) return status;
  if (wc_server_listen(server, "tcp://127.0.0.1:0") != WC_ERROR_STATE) return 1;
  if (wc_server_run(server) != WC_ERROR_STATE) return 2;
  if (wc_server_run_without_signals(server) != WC_ERROR_STATE) return 3;
  if (wc_server_log(server, wc_log_stderr, NULL) != WC_ERROR_STATE) return 4;
  if (wc_server_load(server, "./none.so") != WC_ERROR_STATE) return 5;
  if (wc_server_handle(server, "1", 1, &reply, &size) != WC_ERROR_STATE) return 6;
  if (wc_server_endpoint(server, 0) != NULL || wc_last_status() != WC_ERROR_STATE) return 7;
  wc_server_stop(server); /* or its next run would end at once */
  if (wc_last_status() != WC_ERROR_STATE) return 8;
  wc_server_free(server);
  return wc_last_status() == WC_ERROR_STATE ? WC_OK : 9;
}
WC_MODULE = {sizeof(wc_module), WC_ABI_VERSION, load};
