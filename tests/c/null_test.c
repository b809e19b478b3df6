/* NULL where the header does not allow it: WC_ERROR_ARGUMENT, of every function, and no call that seems to have worked. */
#include "check.h"

/* Another status than the one that is looked for. */
static void forget(void) {
  wc_cursor none = WC_CURSOR_INIT;
  CHECK(!wc_cursor_next(&none));
  CHECK(wc_last_status() == WC_ERROR_STATE);
}

#define IS_REFUSED(call)                         \
  do {                                           \
    forget();                                    \
    call;                                        \
    CHECK(wc_last_status() == WC_ERROR_ARGUMENT); \
    CHECK(wc_last_error()[0] != '\0');           \
  } while (0)
#define RETURNS_FALSE(call) IS_REFUSED(CHECK(!(call)))
#define RETURNS_STATUS(call) IS_REFUSED(CHECK((call) == WC_ERROR_ARGUMENT))

static int which;

/* What cannot be read has failed the call, so that the handler can just return. */
static void reads(wc_call *call, void *user) {
  const char *text;
  const void *bytes;
  size_t size;
  (void)user;
  wc_params_allow_more(call);
  switch (which) {
    case 0: RETURNS_FALSE(wc_param_i64(call, 0, "a", NULL)); return;
    case 1: RETURNS_FALSE(wc_param_u64(call, 0, "a", NULL)); return;
    case 2: RETURNS_FALSE(wc_param_f64(call, 0, "a", NULL)); return;
    case 3: RETURNS_FALSE(wc_param_bool(call, 0, "a", NULL)); return;
    case 4: RETURNS_FALSE(wc_param_text(call, 0, "a", NULL, &size)); return;
    case 5: RETURNS_FALSE(wc_param_text(call, 0, "a", &text, NULL)); return;
    case 6: RETURNS_FALSE(wc_param_bytes(call, 0, "a", NULL, &size)); return;
    case 7: RETURNS_FALSE(wc_param_bytes(call, 0, "a", &bytes, NULL)); return;
    case 8: RETURNS_FALSE(wc_param_json(call, 0, "a", NULL, &size)); return;
    case 9: RETURNS_FALSE(wc_param_json(call, 0, "a", &text, NULL)); return;
    case 10: RETURNS_FALSE(wc_param_opt_i64(call, 0, "a", NULL)); return;
    case 11: RETURNS_FALSE(wc_param_opt_u64(call, 0, "a", NULL)); return;
    case 12: RETURNS_FALSE(wc_param_opt_f64(call, 0, "a", NULL)); return;
    case 13: RETURNS_FALSE(wc_param_opt_bool(call, 0, "a", NULL)); return;
    case 14: RETURNS_FALSE(wc_param_opt_text(call, 0, "a", NULL, &size)); return;
    case 15: RETURNS_FALSE(wc_param_opt_bytes(call, 0, "a", &bytes, NULL)); return;
    case 16: RETURNS_FALSE(wc_param_opt_json(call, 0, "a", &text, NULL)); return;
    case 17: RETURNS_FALSE(wc_param_array(call, 0, "a", NULL)); return;
    case 18: RETURNS_FALSE(wc_param_object(call, 0, "a", NULL)); return;
    case 19: IS_REFUSED(wc_result_text(call, NULL, 1)); return;
    case 20: IS_REFUSED(wc_result_bytes(call, NULL, 1)); return;
    case 21: IS_REFUSED(wc_result_json(call, NULL, 1)); return;
    default: which = -1; wc_result_text(call, NULL, 0);
  }
}

static void cursors(wc_call *call, void *user) {
  wc_cursor list = WC_CURSOR_INIT;
  const char *text;
  size_t size;
  (void)user;
  CHECK(wc_param_array(call, 0, "list", &list) && wc_cursor_next(&list));
  RETURNS_FALSE(wc_cursor_key(&list, NULL, &size));
  RETURNS_FALSE(wc_cursor_key(&list, &text, NULL));
  RETURNS_FALSE(wc_cursor_i64(&list, NULL));
  RETURNS_FALSE(wc_cursor_u64(&list, NULL));
  RETURNS_FALSE(wc_cursor_f64(&list, NULL));
  RETURNS_FALSE(wc_cursor_bool(&list, NULL));
  RETURNS_FALSE(wc_cursor_text(&list, &text, NULL));
  RETURNS_FALSE(wc_cursor_text(&list, NULL, &size));
  RETURNS_FALSE(wc_cursor_bytes(&list, NULL, &size));
  RETURNS_FALSE(wc_cursor_json(&list, NULL, &size));
  RETURNS_FALSE(wc_cursor_array(&list, NULL));
  RETURNS_FALSE(wc_cursor_object(&list, NULL));
}

static void test_handlers(wc_server *server) {
  const char *internal = ERROR_WITH("-32603", "Internal error", "");
  static const char *const params[] = {"[1]", "[\"a\\n\"]", "{\"a\":1}", "{\"a\":\"x\"}"};
  int i;
  for (i = 0; i != 4; ++i) {
    for (which = 0;; ++which) {
      const char *reply = reply_to(server, "reads", params[i]);
      if (which < 0) break;
      CHECK_TEXT(reply, internal);
    }
  }
  CHECK_TEXT(reply_to(server, "reads", NULL), RESULT("\"\""));
  CHECK_TEXT(reply_to(server, "cursors", "[[1]]"), internal);
}

static void test_calls(void) {
  int64_t i;
  uint64_t u;
  double d;
  bool b;
  const char *text;
  const void *bytes;
  size_t size;
  wc_cursor cursor = WC_CURSOR_INIT;
  RETURNS_FALSE(wc_param_i64(NULL, 0, NULL, &i));
  RETURNS_FALSE(wc_param_u64(NULL, 0, NULL, &u));
  RETURNS_FALSE(wc_param_f64(NULL, 0, NULL, &d));
  RETURNS_FALSE(wc_param_bool(NULL, 0, NULL, &b));
  RETURNS_FALSE(wc_param_text(NULL, 0, NULL, &text, &size));
  RETURNS_FALSE(wc_param_bytes(NULL, 0, NULL, &bytes, &size));
  RETURNS_FALSE(wc_param_json(NULL, 0, NULL, &text, &size));
  RETURNS_FALSE(wc_param_opt_i64(NULL, 0, NULL, &i));
  RETURNS_FALSE(wc_param_opt_u64(NULL, 0, NULL, &u));
  RETURNS_FALSE(wc_param_opt_f64(NULL, 0, NULL, &d));
  RETURNS_FALSE(wc_param_opt_bool(NULL, 0, NULL, &b));
  RETURNS_FALSE(wc_param_opt_text(NULL, 0, NULL, &text, &size));
  RETURNS_FALSE(wc_param_opt_bytes(NULL, 0, NULL, &bytes, &size));
  RETURNS_FALSE(wc_param_opt_json(NULL, 0, NULL, &text, &size));
  RETURNS_FALSE(wc_param_given(NULL, 0, NULL));
  RETURNS_FALSE(wc_param_array(NULL, 0, NULL, &cursor));
  RETURNS_FALSE(wc_param_object(NULL, 0, NULL, &cursor));
  RETURNS_FALSE(wc_params_end(NULL));
  IS_REFUSED(wc_params_allow_more(NULL));
  IS_REFUSED(wc_result_null(NULL));
  IS_REFUSED(wc_result_bool(NULL, true));
  IS_REFUSED(wc_result_i64(NULL, 1));
  IS_REFUSED(wc_result_u64(NULL, 1));
  IS_REFUSED(wc_result_f64(NULL, 1));
  IS_REFUSED(wc_result_text(NULL, "a", 1));
  IS_REFUSED(wc_result_bytes(NULL, "a", 1));
  IS_REFUSED(wc_result_json(NULL, "1", 1));
  IS_REFUSED(wc_error(NULL, 1, "no", NULL));
  IS_REFUSED(CHECK_TEXT(wc_call_method(NULL), ""));
  RETURNS_FALSE(wc_call_id(NULL));
  IS_REFUSED(CHECK_TEXT(wc_call_caller(NULL), ""));
  RETURNS_FALSE(wc_call_cancelled(NULL));
  RETURNS_FALSE(wc_call_remaining_ns(NULL));
  RETURNS_FALSE(wc_call_defer(NULL));

  RETURNS_FALSE(wc_cursor_next(NULL));
  RETURNS_FALSE(wc_cursor_key(NULL, &text, &size));
  RETURNS_FALSE(wc_cursor_is_null(NULL));
  RETURNS_FALSE(wc_cursor_i64(NULL, &i));
  RETURNS_FALSE(wc_cursor_u64(NULL, &u));
  RETURNS_FALSE(wc_cursor_f64(NULL, &d));
  RETURNS_FALSE(wc_cursor_bool(NULL, &b));
  RETURNS_FALSE(wc_cursor_text(NULL, &text, &size));
  RETURNS_FALSE(wc_cursor_bytes(NULL, &bytes, &size));
  RETURNS_FALSE(wc_cursor_json(NULL, &text, &size));
  RETURNS_FALSE(wc_cursor_array(NULL, &cursor));
  RETURNS_FALSE(wc_cursor_object(NULL, &cursor));
}

static void on_log(const wc_log_record *record, void *user) { (void)record; (void)user; }
static void on_reply(const wc_reply *reply, void *user) { (void)reply; (void)user; }
static void on_event(const char *topic, const char *json, size_t size, void *user) {
  (void)topic;
  (void)json;
  (void)size;
  (void)user;
}

static void test_servers(wc_server *server) {
  const char *reply;
  size_t size;
  wc_method method;
  memset(&method, 0, sizeof method);
  method.size = sizeof method;
  method.name = "m";
  IS_REFUSED(wc_log_stderr(NULL, NULL));
  RETURNS_STATUS(wc_server_log(NULL, on_log, NULL));
  RETURNS_STATUS(wc_server_method(NULL, "m", reads, NULL));
  RETURNS_STATUS(wc_server_method(server, NULL, reads, NULL));
  RETURNS_STATUS(wc_server_method(server, "m", NULL, NULL));
  RETURNS_STATUS(wc_server_add(NULL, &method));
  RETURNS_STATUS(wc_server_add(server, NULL));
  RETURNS_STATUS(wc_server_add(server, &method));
  RETURNS_STATUS(wc_server_listen(NULL, "tcp://127.0.0.1:0"));
  RETURNS_STATUS(wc_server_listen(server, NULL));
  RETURNS_FALSE(wc_server_endpoint(NULL, 0));
  RETURNS_STATUS(wc_server_run(NULL));
  RETURNS_STATUS(wc_server_run_without_signals(NULL));
  IS_REFUSED(wc_server_stop(NULL));
  RETURNS_STATUS(wc_server_handle(NULL, "1", 1, &reply, &size));
  RETURNS_STATUS(wc_server_handle(server, NULL, 1, &reply, &size));
  RETURNS_STATUS(wc_server_handle(server, "1", 1, NULL, &size));
  RETURNS_STATUS(wc_server_handle(server, "1", 1, &reply, NULL));
  RETURNS_STATUS(wc_server_load(NULL, "./x.so"));
  RETURNS_STATUS(wc_server_load(server, NULL));
}

static void test_clients(void) {
  int64_t i;
  uint64_t u;
  double d;
  bool b;
  const char *text;
  const void *bytes;
  size_t size;
  wc_cursor cursor = WC_CURSOR_INIT;
  wc_method method;
  wc_client *client = wc_client_new("tcp://127.0.0.1:1", NULL);
  memset(&method, 0, sizeof method);
  method.size = sizeof method;
  method.name = "m";
  method.handler = reads;
  CHECK(client != NULL);
  RETURNS_FALSE(wc_client_new(NULL, NULL));
  RETURNS_STATUS(wc_client_log(NULL, on_log, NULL));
  RETURNS_STATUS(wc_client_connect(NULL));
  RETURNS_FALSE(wc_client_call(NULL, "m", NULL, NULL));
  RETURNS_FALSE(wc_client_call(client, NULL, NULL, NULL));
  RETURNS_STATUS(wc_client_start(NULL, "m", NULL, NULL, on_reply, NULL, NULL));
  RETURNS_STATUS(wc_client_start(client, NULL, NULL, NULL, on_reply, NULL, NULL));
  RETURNS_STATUS(wc_client_start(client, "m", NULL, NULL, NULL, NULL, NULL));
  RETURNS_FALSE(wc_pending_cancel(NULL));
  RETURNS_STATUS(wc_client_notify(NULL, "m", NULL));
  RETURNS_STATUS(wc_client_notify(client, NULL, NULL));
  RETURNS_STATUS(wc_client_provide(NULL, &method, NULL));
  RETURNS_STATUS(wc_client_provide(client, NULL, NULL));
  RETURNS_STATUS(wc_client_unprovide(NULL, "m"));
  RETURNS_STATUS(wc_client_unprovide(client, NULL));
  RETURNS_FALSE(wc_client_subscribe(NULL, "t", NULL, on_event, NULL));
  RETURNS_FALSE(wc_client_subscribe(client, NULL, NULL, on_event, NULL));
  RETURNS_FALSE(wc_client_subscribe(client, "t", NULL, NULL, NULL));
  RETURNS_STATUS(wc_client_publish(NULL, "t", NULL, false, NULL));
  RETURNS_STATUS(wc_client_publish(client, NULL, NULL, false, NULL));
  wc_client_free(client);

  RETURNS_STATUS(wc_reply_error(NULL));
  IS_REFUSED(CHECK_TEXT(wc_reply_message(NULL), ""));
  RETURNS_FALSE(wc_reply_data(NULL));
  RETURNS_FALSE(wc_reply_json(NULL, &size));
  RETURNS_FALSE(wc_reply_i64(NULL, &i));
  RETURNS_FALSE(wc_reply_u64(NULL, &u));
  RETURNS_FALSE(wc_reply_f64(NULL, &d));
  RETURNS_FALSE(wc_reply_bool(NULL, &b));
  RETURNS_FALSE(wc_reply_text(NULL, &text, &size));
  RETURNS_FALSE(wc_reply_bytes(NULL, &bytes, &size));
  RETURNS_FALSE(wc_reply_array(NULL, &cursor));
  RETURNS_FALSE(wc_reply_object(NULL, &cursor));
}

/* A reply of a client of the server's own process. */
static void test_replies(wc_client *client) {
  const char *text;
  size_t size;
  wc_reply *reply = wc_client_call(client, "rpc.ping", NULL, NULL);
  CHECK(reply != NULL && wc_reply_json(reply, NULL) != NULL);
  RETURNS_FALSE(wc_reply_i64(reply, NULL));
  RETURNS_FALSE(wc_reply_u64(reply, NULL));
  RETURNS_FALSE(wc_reply_f64(reply, NULL));
  RETURNS_FALSE(wc_reply_bool(reply, NULL));
  RETURNS_FALSE(wc_reply_text(reply, NULL, &size));
  RETURNS_FALSE(wc_reply_text(reply, &text, NULL));
  RETURNS_FALSE(wc_reply_bytes(reply, NULL, &size));
  RETURNS_FALSE(wc_reply_array(reply, NULL));
  RETURNS_FALSE(wc_reply_object(reply, NULL));
  wc_reply_free(reply);
}

int main(void) {
  running_server running;
  wc_client *client;
  wc_server *server = wc_server_new(NULL);
  CHECK(server != NULL);
  CHECK(wc_server_method(server, "reads", reads, NULL) == WC_OK);
  CHECK(wc_server_method(server, "cursors", cursors, NULL) == WC_OK);
  test_calls();
  test_handlers(server);
  test_servers(server);
  test_clients();
  client = start_server(&running, server);
  test_replies(client);
  wc_client_free(client);
  end_server(&running);
  return 0;
}
