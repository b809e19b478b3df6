/* Handlers whose callers speak other encodings: what they read and answer is the same in each. */
#include "check.h"

/* Of each type, by position or name: what it has read as one text. */
static void all(wc_call *call, void *user) {
  int64_t i, opt = -1;
  uint64_t u;
  double f;
  bool b;
  const char *text, *json;
  const void *bytes;
  size_t text_size, bytes_size, json_size;
  char out[256];
  (void)user;
  if (!wc_param_i64(call, 0, "i", &i) || !wc_param_u64(call, 1, "u", &u) || !wc_param_f64(call, 2, "f", &f) ||
      !wc_param_bool(call, 3, "b", &b) || !wc_param_text(call, 4, "text", &text, &text_size) ||
      !wc_param_bytes(call, 5, "bytes", &bytes, &bytes_size) ||
      !wc_param_json(call, 6, "json", &json, &json_size) || !wc_param_opt_i64(call, 7, "opt", &opt))
    return;
  wc_result_text(call, out,
                 (size_t)snprintf(out, sizeof out, "%ld %lu %.2f %d %.*s %.*s %.*s %ld", (long)i, (unsigned long)u, f, b,
                                  (int)text_size, text, (int)bytes_size, (const char *)bytes, (int)json_size, json,
                                  (long)opt));
}

/* {"name": [1, 2], …}: the sum of the numbers and of the lengths of the names. */
static void nested(wc_call *call, void *user) {
  wc_cursor members = WC_CURSOR_INIT, numbers = WC_CURSOR_INIT;
  int64_t number, sum = 0;
  const char *key;
  size_t size;
  (void)user;
  if (!wc_param_object(call, 0, "all", &members)) return;
  while (wc_cursor_next(&members)) {
    CHECK(wc_cursor_key(&members, &key, &size));
    sum += (int64_t)size;
    if (wc_cursor_is_null(&members)) continue;
    if (!wc_cursor_array(&members, &numbers)) return;
    while (wc_cursor_next(&numbers)) {
      if (!wc_cursor_i64(&numbers, &number)) return;
      sum += number;
    }
  }
  wc_result_i64(call, sum);
}

static void bytes(wc_call *call, void *user) {
  const void *value;
  size_t size;
  (void)user;
  if (wc_param_bytes(call, 0, "value", &value, &size)) wc_result_bytes(call, value, size);
}

static void json(wc_call *call, void *user) {
  const char *value;
  size_t size;
  (void)user;
  if (wc_param_json(call, 0, "value", &value, &size)) wc_result_json(call, value, size);
}

/* Answers from another thread, with what it has read there. */
static pthread_t answering;
static void *answer(void *deferred) {
  const char *text;
  size_t size;
  if (wc_param_text(deferred, 0, "text", &text, &size)) wc_result_text(deferred, text, size);
  wc_call_release(deferred);
  return NULL;
}
static void later(wc_call *call, void *user) {
  (void)user;
  CHECK(pthread_create(&answering, NULL, answer, wc_call_defer(call)) == 0);
}

static void fails(wc_call *call, void *user) {
  (void)user;
  wc_error(call, 17, "no", "{\"why\": [1, \"x\"]}");
}

static void declared(wc_call *call, void *user) {
  int64_t count;
  (void)user;
  CHECK(wc_param_i64(call, 0, "count", &count));
  wc_result_i64(call, count);
}

static void expect(wc_client *client, const char *method, const char *params, const char *wanted) {
  char got[512];
  wc_reply *reply = wc_client_call(client, method, params, NULL);
  if (wc_reply_error(reply) == 0) {
    CHECK(wc_reply_json(reply, NULL) != NULL);
    snprintf(got, sizeof got, "%s", wc_reply_json(reply, NULL));
  } else {
    snprintf(got, sizeof got, "%d %s", wc_reply_error(reply), wc_reply_data(reply) != NULL ? wc_reply_data(reply) : "-");
  }
  CHECK_TEXT(got, wanted);
  wc_reply_free(reply);
}

static void test_encoding(const char *endpoint, const char *encoding) {
  char options[64];
  wc_client *client;
  snprintf(options, sizeof options, "{\"encoding\": \"%s\"}", encoding);
  client = wc_client_new(endpoint, options);
  CHECK(client != NULL);
  expect(client, "all", "[-5, 18446744073709551615, 2.5, true, \"aé\", {\"$bytes\":\"eHl6\"}, [1,{\"a\":null}], 9]",
         "\"-5 18446744073709551615 2.50 1 aé xyz [1,{\\\"a\\\":null}] 9\"");
  expect(client, "all",
         "{\"json\": 1, \"bytes\": {\"$bytes\":\"eHl6\"}, \"text\": \"t\", \"b\": false, \"f\": 3, \"u\": 2, \"i\": 1}",
         "\"1 2 3.00 0 t xyz 1 -1\"");
  expect(client, "all", "[1, -2]", "-32602 {\"loc\":[\"u\"],\"expected\":\"integer from 0 to 18446744073709551615\","
                                   "\"got\":\"-2\"}");
  expect(client, "nested", "[{\"ab\": [1, 2], \"c\": null, \"def\": [30]}]", "39");
  expect(client, "nested", "{\"all\": {\"ab\": [1, \"x\"]}}",
         "-32602 {\"loc\":[\"all\",\"ab\",1],\"expected\":\"integer\",\"got\":\"\\\"x\\\"\"}");
  expect(client, "bytes", "[{\"$bytes\":\"AP8=\"}]", "{\"$bytes\":\"AP8=\"}");
  expect(client, "json", "[{\"a\": [1.5, \"e\", {\"$bytes\":\"AP8=\"}]}]",
         "{\"a\":[1.5,\"e\",{\"$bytes\":\"AP8=\"}]}");
  expect(client, "later", "[\"kept\"]", "\"kept\"");
  CHECK(pthread_join(answering, NULL) == 0);
  expect(client, "fails", NULL, "17 {\"why\":[1,\"x\"]}");
  expect(client, "declared", "{\"count\": 3}", "3");
  expect(client, "declared", "{\"count\": \"3\"}",
         "-32602 {\"loc\":[\"count\"],\"expected\":\"integer\",\"got\":\"\\\"3\\\"\"}");
  wc_client_free(client);
}

int main(void) {
  static const char *encodings[] = {"json", "msgpack", "cbor", "protobuf"};
  wc_param params[1];
  wc_method method;
  running_server running;
  wc_client *client;
  size_t i;
  wc_server *server = wc_server_new(NULL);
  memset(params, 0, sizeof params);
  params[0].size = sizeof params[0];
  params[0].name = "count";
  params[0].type = WC_I64;
  memset(&method, 0, sizeof method);
  method.size = sizeof method;
  method.name = "declared";
  method.handler = declared;
  method.params = params;
  method.param_count = 1;
  CHECK(wc_server_add(server, &method) == WC_OK);
  CHECK(wc_server_method(server, "all", all, NULL) == WC_OK);
  CHECK(wc_server_method(server, "nested", nested, NULL) == WC_OK);
  CHECK(wc_server_method(server, "bytes", bytes, NULL) == WC_OK);
  CHECK(wc_server_method(server, "json", json, NULL) == WC_OK);
  CHECK(wc_server_method(server, "later", later, NULL) == WC_OK);
  CHECK(wc_server_method(server, "fails", fails, NULL) == WC_OK);
  client = start_server(&running, server);
  for (i = 0; i < sizeof encodings / sizeof *encodings; ++i) test_encoding(wc_server_endpoint(server, 0), encodings[i]);
  wc_client_free(client);
  end_server(&running);
  return 0;
}
