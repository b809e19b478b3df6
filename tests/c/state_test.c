/* Functions that are for another time: WC_ERROR_STATE with the reason, and no effect; and the reasons of other refusals. */
#define _POSIX_C_SOURCE 200809L
#include <unistd.h>

#include "check.h"

#define IS_TOO_LATE(call)                         \
  do {                                            \
    CHECK((call) == WC_ERROR_STATE);              \
    CHECK(wc_last_status() == WC_ERROR_STATE);    \
    if (strstr(wc_last_error(), "run") == NULL) CHECK_TEXT(wc_last_error(), "run"); \
  } while (0)

#define HAS_REASON(status, words)                                              \
  do {                                                                         \
    CHECK(wc_last_status() == (status));                                       \
    if (strstr(wc_last_error(), words) == NULL) CHECK_TEXT(wc_last_error(), words); \
  } while (0)

static void nothing(wc_call *call, void *user) { (void)call; (void)user; }
static void on_log(const wc_log_record *record, void *user) { (void)record; (void)user; }

static void adds_a_method(wc_call *call, void *server) {
  CHECK(wc_server_method(server, "late", nothing, NULL) == WC_ERROR_STATE);
  CHECK(strstr(wc_last_error(), "handler") != NULL);
  wc_server_free(server); /* which is used still */
  CHECK(wc_last_status() == WC_ERROR_STATE);
  wc_result_i64(call, 1);
}

static void are_too_late(wc_server *server) {
  wc_method method;
  memset(&method, 0, sizeof method);
  method.size = sizeof method;
  method.name = "late";
  method.handler = nothing;
  IS_TOO_LATE(wc_server_log(server, on_log, NULL));
  IS_TOO_LATE(wc_server_method(server, "late", nothing, NULL));
  IS_TOO_LATE(wc_server_add(server, &method));
  IS_TOO_LATE(wc_server_listen(server, "tcp://127.0.0.1:0"));
  IS_TOO_LATE(wc_server_load(server, "./none.so"));
  IS_TOO_LATE(wc_server_run(server));
  IS_TOO_LATE(wc_server_run_without_signals(server));
}

static wc_server *running;
static void changes_its_server(wc_call *call, void *user) {
  const char *reply;
  size_t size;
  (void)user;
  are_too_late(running);
  IS_TOO_LATE(wc_server_handle(running, "1", 1, &reply, &size));
  wc_server_free(running);
  CHECK(wc_last_status() == WC_ERROR_STATE);
  wc_result_i64(call, 2);
}

static void *run(void *server) {
  CHECK(wc_server_run_without_signals(server) == WC_OK);
  return NULL;
}

static void test_before_it_runs(void) {
  pthread_t thread;
  wc_client *client;
  wc_reply *reply;
  const char *text;
  size_t size;
  running = wc_server_new(NULL);
  CHECK(wc_server_log(running, on_log, NULL) == WC_OK && wc_server_log(running, NULL, NULL) == WC_OK);
  CHECK(wc_server_method(running, "adds_a_method", adds_a_method, running) == WC_OK);
  CHECK(wc_server_method(running, "changes_its_server", changes_its_server, NULL) == WC_OK);
  CHECK_TEXT(reply_to(running, "adds_a_method", NULL), RESULT("1"));
  CHECK(wc_server_listen(running, "tcp://127.0.0.1:0") == WC_OK);
  CHECK(pthread_create(&thread, NULL, run, running) == 0);
  client = wc_client_new(wc_server_endpoint(running, 0), NULL);
  CHECK(wc_client_log(client, on_log, NULL) == WC_OK);
  reply = wc_client_call(client, "changes_its_server", NULL, NULL);
  CHECK_TEXT(wc_reply_json(reply, NULL), "2");
  wc_reply_free(reply);
  are_too_late(running); /* by another thread as well */
  CHECK(wc_client_log(client, on_log, NULL) == WC_ERROR_STATE);
  CHECK(strstr(wc_last_error(), "before") != NULL);
  wc_client_free(client);
  wc_server_stop(running);
  pthread_join(thread, NULL);
  are_too_late(running);
  CHECK(wc_server_handle(running, "1", 1, &text, &size) == WC_OK);
  wc_server_free(running);
}

static void test_reasons(void) {
  running_server broker;
  wc_client *client;
  size_t receivers;
  CHECK(wc_server_new("{\"prot\": 1}") == NULL);
  HAS_REASON(WC_ERROR_ARGUMENT, "prot");
  CHECK(wc_server_new("{\"limits\": {\"no\": 1}}") == NULL);
  HAS_REASON(WC_ERROR_ARGUMENT, "limits.no");
  CHECK(wc_broker_new("[]") == NULL);
  HAS_REASON(WC_ERROR_ARGUMENT, "object");
  CHECK(wc_client_new("tcp://127.0.0.1:1", "{\"port\": 1}") == NULL);
  HAS_REASON(WC_ERROR_ARGUMENT, "port");
  client = start_server(&broker, wc_broker_new(NULL));
  CHECK(wc_client_publish(client, "a..b", NULL, false, &receivers) == -32602);
  HAS_REASON(-32602, "Invalid params: {");
  HAS_REASON(-32602, "topic");
  wc_client_free(client);
  end_server(&broker);
}

/* One line a record, in which nothing stands twice. */
static void test_stderr(void) {
  static const char json[] = "{\"time\":\"then\",\"level\":\"warning\",\"message\":\"it is full\",\"peer\":\"::1\",\"bytes\":5}";
  wc_log_record record = {sizeof(wc_log_record), WC_LOG_WARNING, "it is full", json};
  char text[512];
  ssize_t size;
  int ends[2];
  int before = dup(2);
  char *line;
  CHECK(before >= 0 && pipe(ends) == 0 && dup2(ends[1], 2) == 2);
  wc_log_stderr(&record, NULL);
  record.level = 99; /* and no level is taken for an index */
  record.json = "no JSON";
  wc_log_stderr(&record, NULL);
  CHECK(dup2(before, 2) == 2);
  close(before);
  close(ends[1]);
  size = read(ends[0], text, sizeof text - 1);
  CHECK(size > 0);
  text[size] = '\0';
  close(ends[0]);
  line = strchr(text, ' ');
  CHECK(line != NULL && strchr(line, '\n') != NULL);
  *strchr(line, '\n') = '\0';
  CHECK_TEXT(line, " warning it is full peer=\"::1\" bytes=5");
  line = strchr(line + strlen(line) + 1, ' ');
  CHECK(line != NULL);
  CHECK_TEXT(line, " error it is full\n");
}

int main(void) {
  test_before_it_runs();
  test_reasons();
  test_stderr();
  return 0;
}
