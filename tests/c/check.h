/* What the tests in C share: a check that says where it failed, and a call of a method as text. */
#ifndef WIRECALL_TESTS_CHECK_H
#define WIRECALL_TESTS_CHECK_H

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

/* The same replies, by what makes them differ. */
#define RESULT(json) "{\"jsonrpc\":\"2.0\",\"result\":" json ",\"id\":1}"
#define ERROR_WITH(code, message, data) \
  "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":" code ",\"message\":\"" message "\"" data "},\"id\":1}"
#define INVALID(loc, expected, got)           \
  ERROR_WITH("-32602", "Invalid params",      \
             ",\"data\":{\"loc\":" loc ",\"expected\":\"" expected "\",\"got\":\"" got "\"}")

#endif
