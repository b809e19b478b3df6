/* Cursors over replies, of which one that fails leaves the others alone; and what a walk through all of a value costs. */
#include <time.h>

#include "check.h"

/* ---- replies ---- */

static void gives_lists(wc_call *call, void *user) {
  static const char json[] = "{\"a\":[1,\"two\",{\"n\":3}],\"b\":[4,[5,null]]}";
  (void)user;
  wc_result_json(call, json, sizeof json - 1);
}

static void test_a_misfit_in_a_reply(wc_client *client) {
  wc_cursor members = WC_CURSOR_INIT, list = WC_CURSOR_INIT, inner = WC_CURSOR_INIT;
  int64_t value = 0;
  const char *text;
  size_t size;
  wc_reply *reply = wc_client_call(client, "gives_lists", NULL, NULL);
  CHECK(wc_reply_object(reply, &members) && wc_cursor_next(&members) && wc_cursor_array(&members, &list));
  CHECK(wc_cursor_next(&list) && wc_cursor_i64(&list, &value) && value == 1);
  CHECK(wc_cursor_next(&list) && !wc_cursor_i64(&list, &value));
  CHECK(wc_last_status() == WC_ERROR_ARGUMENT);
  CHECK_TEXT(wc_last_error(),
             "the result is another: {\"loc\":[\"a\",1],\"expected\":\"integer\",\"got\":\"\\\"two\\\"\"}");
  /* It is still there to be read as what it is, and so is all the rest. */
  CHECK(wc_cursor_text(&list, &text, &size) && size == 3 && memcmp(text, "two", 3) == 0);
  CHECK(wc_cursor_next(&list) && !wc_cursor_array(&list, &inner));
  CHECK(strstr(wc_last_error(), "{\"loc\":[\"a\",2],\"expected\":\"array\"") != NULL);
  CHECK(wc_cursor_object(&list, &inner) && wc_cursor_next(&inner) && wc_cursor_i64(&inner, &value) && value == 3);
  CHECK(!wc_cursor_next(&inner) && !wc_cursor_next(&list));
  CHECK(wc_cursor_next(&members) && wc_cursor_array(&members, &list));
  CHECK(wc_cursor_next(&list) && wc_cursor_i64(&list, &value) && value == 4);
  CHECK(wc_cursor_next(&list) && wc_cursor_array(&list, &inner) && wc_cursor_next(&inner));
  CHECK(!wc_cursor_bool(&inner, NULL) && wc_last_status() == WC_ERROR_ARGUMENT);
  CHECK(wc_cursor_i64(&inner, &value) && value == 5);
  CHECK(wc_cursor_next(&inner) && wc_cursor_is_null(&inner) && !wc_cursor_i64(&inner, &value));
  CHECK(strstr(wc_last_error(), "{\"loc\":[\"b\",1,1],\"expected\":\"integer\",\"got\":\"null\"}") != NULL);
  CHECK(!wc_cursor_next(&inner) && !wc_cursor_next(&list) && !wc_cursor_next(&members));
  wc_reply_free(reply);
}

static void test_a_cursor_that_stands_nowhere(wc_client *client) {
  wc_cursor list = WC_CURSOR_INIT, none = WC_CURSOR_INIT;
  int64_t value;
  wc_reply *reply = wc_client_call(client, "gives_lists", NULL, NULL);
  CHECK(!wc_cursor_next(&none) && wc_last_status() == WC_ERROR_STATE);
  CHECK(wc_reply_object(reply, &list) && !wc_cursor_i64(&list, &value) && wc_last_status() == WC_ERROR_STATE);
  CHECK(strstr(wc_last_error(), "wc_cursor_next") != NULL);
  wc_reply_free(reply);
}

/* ---- walks ---- */

enum { kDepth = 200, kItems = 200000 };

/* The innermost of `depth` arrays has the items, and each has one element more behind the next. */
static void goes_down(wc_call *call, void *user) {
  wc_cursor at[kDepth];
  const wc_cursor closed = WC_CURSOR_INIT;
  int64_t value, sum = 0;
  int depth, i;
  (void)user;
  if (!wc_param_i64(call, 0, "depth", &value)) return;
  depth = (int)value;
  for (i = 0; i != depth; ++i) at[i] = closed;
  CHECK(wc_param_array(call, 1, "nested", &at[0]));
  for (i = 1; i != depth; ++i) CHECK(wc_cursor_next(&at[i - 1]) && wc_cursor_array(&at[i - 1], &at[i]));
  while (wc_cursor_next(&at[depth - 1])) {
    CHECK(wc_cursor_i64(&at[depth - 1], &value));
    sum += value;
  }
  for (i = depth - 1; i-- != 0;) {
    CHECK(wc_cursor_next(&at[i]) && wc_cursor_i64(&at[i], &value));
    sum += value;
    CHECK(!wc_cursor_next(&at[i]));
  }
  wc_result_i64(call, sum);
}

/* Seconds of the processor for one walk, the least of several. */
static double walk_seconds(wc_server *server, int depth) {
  char *message = malloc(2 * kItems + 8 * kDepth + 200);
  char *end = message;
  char wanted[100];
  double least = 1e9;
  int i;
  CHECK(message != NULL);
  end += sprintf(end, "{\"jsonrpc\":\"2.0\",\"method\":\"goes_down\",\"params\":[%d,", depth);
  for (i = 0; i != depth; ++i) *end++ = '[';
  for (i = 0; i != kItems; ++i) end += sprintf(end, i != 0 ? ",1" : "1");
  for (i = 0; i != depth; ++i) end += sprintf(end, i + 1 != depth ? "],1" : "]");
  end += sprintf(end, "],\"id\":1}");
  snprintf(wanted, sizeof wanted, RESULT("%d"), kItems + depth - 1);
  for (i = 0; i != 5; ++i) {
    const char *reply;
    size_t size;
    const clock_t began = clock();
    double took;
    CHECK(wc_server_handle(server, message, (size_t)(end - message), &reply, &size) == WC_OK);
    took = (double)(clock() - began) / CLOCKS_PER_SEC;
    CHECK_TEXT(reply, wanted);
    if (took < least) least = took;
  }
  free(message);
  return least;
}

static void test_depth_costs_nothing(wc_server *server) {
  const double flat = walk_seconds(server, 1);
  const double deep = walk_seconds(server, kDepth);
  if (deep > 4 * flat) fprintf(stderr, "%d levels: %g s, one: %g s\n", kDepth, deep, flat);
  CHECK(deep <= 4 * flat);
}

int main(void) {
  running_server running;
  wc_client *client;
  wc_server *server = wc_server_new(NULL);
  CHECK(wc_server_method(server, "gives_lists", gives_lists, NULL) == WC_OK);
  CHECK(wc_server_method(server, "goes_down", goes_down, NULL) == WC_OK);
  test_depth_costs_nothing(server);
  client = start_server(&running, server);
  test_a_misfit_in_a_reply(client);
  test_a_cursor_that_stands_nowhere(client);
  wc_client_free(client);
  end_server(&running);
  return 0;
}
