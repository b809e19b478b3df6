/* Parameters by name: each is found wherever it is, and many of them in little more time than one, whatever the size. */
#include <time.h>

#include "check.h"

enum { kNames = 60, kMembers = 60000 };

static const char *name_of(int i) {
  static char names[kNames][8];
  sprintf(names[i], "p%d", i);
  return names[i];
}

/* The sum of those that are given, backwards. */
static void sums(wc_call *call, void *user) {
  int64_t sum = 0;
  int i;
  (void)user;
  wc_params_allow_more(call);
  for (i = kNames; i-- != 0;) {
    int64_t value = 0;
    if (!wc_param_opt_i64(call, (size_t)i, name_of(i), &value)) return;
    sum += value;
  }
  wc_result_i64(call, sum);
}

/* The same of one parameter. */
static void takes_one(wc_call *call, void *user) {
  int64_t value = 0;
  (void)user;
  wc_params_allow_more(call);
  if (wc_param_opt_i64(call, 0, "p0", &value)) wc_result_i64(call, value);
}

/* `others` members whose names have escapes, with `named` parameters spread among them. */
static char *message_of(const char *method, int others, int named, size_t *size) {
  char *const message = malloc((size_t)others * 24 + (size_t)named * 16 + 200);
  char *end = message;
  int i, put = 0;
  CHECK(message != NULL);
  end += sprintf(end, "{\"jsonrpc\":\"2.0\",\"method\":\"%s\",\"params\":{\"\\u0061\":0", method);
  for (i = 0; i != others; ++i) {
    end += sprintf(end, ",\"\\u0078%d\":true", i);
    for (; put < named && put <= (i + 1) * named / others; ++put) end += sprintf(end, ",\"\\u0070%d\":%d", put, put + 1);
  }
  end += sprintf(end, "},\"id\":1}");
  *size = (size_t)(end - message);
  return message;
}

static double seconds_of(wc_server *server, const char *method, int named, const char *wanted) {
  size_t size;
  char *const message = message_of(method, kMembers, named, &size);
  double least = 1e9;
  int i;
  for (i = 0; i != 3; ++i) {
    const clock_t began = clock();
    const char *reply;
    size_t reply_size;
    double took;
    CHECK(wc_server_handle(server, message, size, &reply, &reply_size) == WC_OK);
    took = (double)(clock() - began) / CLOCKS_PER_SEC;
    CHECK_TEXT(reply, wanted);
    if (took < least) least = took;
  }
  free(message);
  return least;
}

static void test_many_cost_little_more_than_one(wc_server *server) {
  const double one = seconds_of(server, "takes_one", 0, RESULT("0"));
  const double missing = seconds_of(server, "sums", 0, RESULT("0"));
  const double given = seconds_of(server, "sums", kNames, RESULT("1830"));
  if (missing > 5 * one || given > 5 * one) fprintf(stderr, "one: %g s, missing: %g s, given: %g s\n", one, missing, given);
  CHECK(missing <= 5 * one && given <= 5 * one);
}

static void test_too_many_are_refused(wc_server *server) {
  size_t size, reply_size;
  char *const message = message_of("sums", 65536, 0, &size);
  const char *reply;
  CHECK(wc_server_handle(server, message, size, &reply, &reply_size) == WC_OK);
  CHECK(strstr(reply, "-32602") != NULL && strstr(reply, "at most 65536 members") != NULL);
  free(message);
}

int main(void) {
  wc_server *server = wc_server_new(NULL);
  CHECK(wc_server_method(server, "sums", sums, NULL) == WC_OK);
  CHECK(wc_server_method(server, "takes_one", takes_one, NULL) == WC_OK);
  CHECK_TEXT(reply_to(server, "sums", "{\"p3\":1.0,\"p1\":2,\"p59\":-3,\"p0\":4}"), RESULT("4"));
  test_many_cost_little_more_than_one(server);
  test_too_many_are_refused(server);
  wc_server_free(server);
  return 0;
}
