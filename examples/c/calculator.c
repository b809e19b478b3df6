/* A server and a client in C, in one program: a handler that reads its parameters, one with an array, one that answers
 * later from a thread of its own, and the calls of all of them. docs/c.md explains each part. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <wirecall.h>

static void add(wc_call *call, void *user) {
  int64_t a, b;
  (void)user;
  if (wc_param_i64(call, 0, "a", &a) && wc_param_i64(call, 1, "b", &b)) wc_result_i64(call, a + b);
}

static void mean(wc_call *call, void *user) {
  wc_cursor values = WC_CURSOR_INIT;
  double value, sum = 0, count = 0;
  (void)user;
  if (!wc_param_array(call, 0, "values", &values)) return;
  while (wc_cursor_next(&values)) {
    if (!wc_cursor_f64(&values, &value)) return;
    sum += value;
    count += 1;
  }
  if (count == 0) {
    wc_error(call, -32602, "there is no mean of nothing", NULL);
  } else {
    wc_result_f64(call, sum / count);
  }
}

/* Answers from another thread. The handler returns at once, and the server goes on. */
static void *answer_later(void *deferred) {
  const char *name;
  size_t size;
  char text[64];
  if (wc_param_text(deferred, 0, "name", &name, &size)) {
    int length = snprintf(text, sizeof text, "Good day, %.*s", size < 40 ? (int)size : 40, name);
    wc_result_text(deferred, text, (size_t)length);
  }
  wc_call_release(deferred);
  return NULL;
}

static void greet(wc_call *call, void *user) {
  pthread_t thread;
  wc_call *deferred = wc_call_defer(call);
  (void)user;
  if (deferred == NULL) return;
  if (pthread_create(&thread, NULL, answer_later, deferred) == 0) {
    pthread_detach(thread);
  } else {
    wc_call_release(deferred); /* answers -32603 */
  }
}

static void *run(void *server) {
  wc_server_run_without_signals(server);
  return NULL;
}

/* Makes one call, and prints its outcome. Returns whether it is the one that is expected. */
static int call_and_print(wc_client *client, const char *method, const char *params, const char *expected) {
  char text[256];
  wc_reply *reply = wc_client_call(client, method, params, NULL);
  int same;
  if (wc_reply_error(reply) == 0) {
    snprintf(text, sizeof text, "%s", wc_reply_json(reply, NULL));
  } else {
    snprintf(text, sizeof text, "%d %s", wc_reply_error(reply), wc_reply_message(reply));
  }
  printf("%s%s -> %s\n", method, params, text);
  same = strcmp(text, expected) == 0;
  wc_reply_free(reply);
  return same;
}

int main(void) {
  pthread_t thread;
  int right;
  wc_client *client;
  wc_server *server = wc_server_new("{\"log_level\": \"warning\"}");
  if (server == NULL) {
    fprintf(stderr, "%s\n", wc_last_error());
    return 1;
  }
  wc_server_log(server, wc_log_stderr, NULL);
  wc_server_method(server, "add", add, NULL);
  wc_server_method(server, "mean", mean, NULL);
  wc_server_method(server, "greet", greet, NULL);
  if (wc_server_listen(server, "tcp://127.0.0.1:0") != WC_OK) {
    fprintf(stderr, "%s\n", wc_last_error());
    return 1;
  }
  pthread_create(&thread, NULL, run, server);

  client = wc_client_new(wc_server_endpoint(server, 0), NULL);
  right = call_and_print(client, "add", "[19, 23]", "42") & call_and_print(client, "add", "{\"b\": 2, \"a\": 1}", "3") &
          call_and_print(client, "add", "[1]", "-32602 Invalid params") &
          call_and_print(client, "mean", "[[1, 2, 4.5]]", "2.5") &
          call_and_print(client, "greet", "[\"Ada\"]", "\"Good day, Ada\"");
  wc_client_free(client);

  wc_server_stop(server);
  pthread_join(thread, NULL);
  wc_server_free(server);
  return right ? 0 : 1;
}
