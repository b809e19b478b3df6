/* What the tests in C share: a check that says where it failed, and a call of a method as text. */
#ifndef WIRECALL_TESTS_CHECK_H
#define WIRECALL_TESTS_CHECK_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wirecall.h>

#define CHECK(condition)                                                    \
  do {                                                                      \
    if (!(condition)) {                                                     \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                              \
    }                                                                       \
  } while (0)

#define CHECK_TEXT(got, wanted) check_text(got, wanted, __FILE__, __LINE__)
static inline void check_text(const char *got, const char *wanted, const char *file, int line) {
  if (got != NULL && strcmp(got, wanted) == 0) return;
  fprintf(stderr, "%s:%d: got    %s\n  instead of %s\n", file, line, got != NULL ? got : "NULL", wanted);
  exit(1);
}

/* The reply to a request with the id 1. It lasts until the next one. */
static inline const char *reply_to(wc_server *server, const char *method, const char *params) {
  char request[1024];
  const char *reply;
  size_t size;
  int length = snprintf(request, sizeof request, "{\"jsonrpc\":\"2.0\",\"method\":\"%s\"%s%s,\"id\":1}", method,
                        params != NULL ? ",\"params\":" : "", params != NULL ? params : "");
  CHECK(wc_server_handle(server, request, (size_t)length, &reply, &size) == WC_OK);
  CHECK(strlen(reply) == size);
  return reply;
}

/* A server that a thread runs. `start_server` returns a client of it; `end_server` frees the server. */
typedef struct running_server {
  wc_server *server;
  pthread_t thread;
} running_server;
static inline void *run_server(void *server) {
  CHECK(wc_server_run_without_signals(server) == WC_OK);
  return NULL;
}
static inline wc_client *start_server(running_server *running, wc_server *server) {
  wc_client *client;
  running->server = server;
  CHECK(wc_server_listen(server, "tcp://127.0.0.1:0") == WC_OK);
  CHECK(pthread_create(&running->thread, NULL, run_server, server) == 0);
  client = wc_client_new(wc_server_endpoint(server, 0), NULL);
  CHECK(client != NULL);
  return client;
}
static inline void end_server(running_server *running) {
  wc_server_stop(running->server);
  CHECK(pthread_join(running->thread, NULL) == 0);
  wc_server_free(running->server);
}

/* The same replies, by what makes them differ. */
#define RESULT(json) "{\"jsonrpc\":\"2.0\",\"result\":" json ",\"id\":1}"
#define ERROR_WITH(code, message, data) \
  "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":" code ",\"message\":\"" message "\"" data "},\"id\":1}"
#define INVALID(loc, expected, got)           \
  ERROR_WITH("-32602", "Invalid params",      \
             ",\"data\":{\"loc\":" loc ",\"expected\":\"" expected "\",\"got\":\"" got "\"}")

#endif
