/* What a handler reads: by position and name, of each type, optional, through cursors; and what it refuses. */
#include "check.h"

static void add(wc_call *call, void *user) { int64_t a, b; (void)user; if (wc_param_i64(call, 0, "a", &a) && wc_param_i64(call, 1, "b", &b)) wc_result_i64(call, a + b); }

static void backwards(wc_call *call, void *user) {
  const char *text;
  size_t size;
  int64_t a = 0, b = 0;
  (void)user;
  if (!wc_param_text(call, 2, "c", &text, &size) || !wc_param_i64(call, 1, "b", &b) || !wc_param_i64(call, 0, "a", &a) ||
      !wc_param_text(call, 2, "c", &text, &size))
    return;
  wc_result_text(call, text, size);
}

static void u64(wc_call *call, void *user) {
  uint64_t value;
  (void)user;
  if (wc_param_u64(call, 0, "value", &value)) wc_result_u64(call, value);
}

static void f64(wc_call *call, void *user) {
  double value;
  (void)user;
  if (wc_param_f64(call, 0, "value", &value)) wc_result_f64(call, value);
}

static void boolean(wc_call *call, void *user) {
  bool value;
  (void)user;
  if (wc_param_bool(call, 0, "value", &value)) wc_result_bool(call, !value);
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

/* The sum of m0 to m69, which it reads backwards with user data. */
static void seventy(wc_call *call, void *user) {
  int64_t value, sum = 0;
  char name[8];
  int i, at;
  for (i = 0; i < 70; ++i) {
    at = user != NULL ? 69 - i : i;
    snprintf(name, sizeof name, "m%d", at);
    if (!wc_param_i64(call, (size_t)at, name, &value)) return;
    sum += value;
  }
  wc_result_i64(call, sum);
}

static void optional(wc_call *call, void *user) {
  int64_t a = 7;
  const char *text = "none";
  size_t size = 4;
  char out[64];
  (void)user;
  if (!wc_param_opt_i64(call, 0, "a", &a) || !wc_param_opt_text(call, 1, "text", &text, &size)) return;
  wc_result_text(call, out,
                 (size_t)snprintf(out, sizeof out, "%d %.*s %s", (int)a, (int)size, text,
                                  wc_param_given(call, 1, "text") ? "given" : "not given"));
}

/* {"name": [1, 2], …} -> the sum of all, with each name's length as often as it has numbers */
static void nested(wc_call *call, void *user) {
  wc_cursor members = WC_CURSOR_INIT, numbers = WC_CURSOR_INIT;
  int64_t number, sum = 0, twice;
  const char *key;
  size_t size;
  (void)user;
  if (!wc_param_object(call, 0, "all", &members)) return;
  while (wc_cursor_next(&members)) {
    CHECK(wc_cursor_key(&members, &key, &size));
    if (wc_cursor_is_null(&members)) continue;
    if (!wc_cursor_array(&members, &numbers)) return;
    while (wc_cursor_next(&numbers)) {
      CHECK(!wc_cursor_key(&numbers, &key, &size) || size == 0);
      if (!wc_cursor_i64(&numbers, &number) || !wc_cursor_i64(&numbers, &twice)) return;
      CHECK(number == twice);
      sum += number;
      if (number == 99) break; /* the rest of this array is passed over */
    }
  }
  wc_result_i64(call, sum);
}

/* Reads another parameter at each element. */
static void scaled(wc_call *call, void *user) {
  wc_cursor values = WC_CURSOR_INIT;
  double value, factor, sum = 0;
  (void)user;
  if (!wc_param_array(call, 0, "values", &values)) return;
  while (wc_cursor_next(&values)) {
    if (!wc_cursor_f64(&values, &value) || !wc_param_f64(call, 1, "factor", &factor)) return;
    sum += value * factor;
  }
  wc_result_f64(call, sum);
}

static int changes = 0;
static void change(wc_call *call, void *user) {
  int64_t a;
  (void)user;
  if (!wc_param_i64(call, 0, "a", &a) || !wc_params_end(call)) return;
  ++changes;
}

static void any(wc_call *call, void *user) {
  (void)user;
  wc_params_allow_more(call);
  wc_result_bool(call, true);
}

static void declared(wc_call *call, void *user) {
  int64_t count, *ran = user;
  const char *text = "-";
  size_t size = 1;
  ++*ran;
  CHECK(wc_param_i64(call, 0, "count", &count));
  CHECK(wc_param_opt_text(call, 1, "text", &text, &size));
  wc_result_text(call, text, size);
}

static void test_positions_and_names(wc_server *server) {
  CHECK_TEXT(reply_to(server, "add", "[1,2]"), RESULT("3"));
  CHECK_TEXT(reply_to(server, "add", "{\"a\":1,\"b\":2}"), RESULT("3"));
  CHECK_TEXT(reply_to(server, "add", "{\"b\":-2,\"a\":1}"), RESULT("-1"));
  CHECK_TEXT(reply_to(server, "add", "[1.0, 1e3]"), RESULT("1001"));
  CHECK_TEXT(reply_to(server, "add", "{\"\\u0061\": 5, \"b\": 6}"), RESULT("11"));
  CHECK_TEXT(reply_to(server, "add", "[9223372036854775806, 1]"), RESULT("9223372036854775807"));
  CHECK_TEXT(reply_to(server, "backwards", "[1, 2, \"x\"]"), RESULT("\"x\""));
  CHECK_TEXT(reply_to(server, "backwards", "{\"c\": \"y\", \"b\": 2, \"a\": 1}"), RESULT("\"y\""));
  CHECK_TEXT(reply_to(server, "backwards", "{\"a\": 1, \"b\": 2, \"c\": \"z\"}"), RESULT("\"z\""));
}

static void test_types(wc_server *server) {
  CHECK_TEXT(reply_to(server, "u64", "[18446744073709551615]"), RESULT("18446744073709551615"));
  CHECK_TEXT(reply_to(server, "u64", "[5]"), RESULT("5"));
  CHECK_TEXT(reply_to(server, "u64", "[-1]"), INVALID("[\"value\"]", "integer from 0 to 18446744073709551615", "-1"));
  CHECK_TEXT(reply_to(server, "f64", "[3]"), RESULT("3"));
  CHECK_TEXT(reply_to(server, "f64", "[0.1]"), RESULT("0.1"));
  CHECK_TEXT(reply_to(server, "f64", "[\"1\"]"), INVALID("[\"value\"]", "number", "\\\"1\\\""));
  CHECK_TEXT(reply_to(server, "boolean", "[true]"), RESULT("false"));
  CHECK_TEXT(reply_to(server, "boolean", "[1]"), INVALID("[\"value\"]", "boolean", "1"));
  CHECK_TEXT(reply_to(server, "bytes", "[{\"$bytes\":\"AAEC/w==\"}]"), RESULT("{\"$bytes\":\"AAEC/w==\"}"));
  CHECK_TEXT(reply_to(server, "json", "[ {\"a\": [1, 2.50, null]} ]"), RESULT("{\"a\":[1,2.50,null]}"));
  CHECK_TEXT(reply_to(server, "backwards", "[1, 2, \"a\\u00e9\\n\\ud83d\\ude00\"]"), RESULT("\"a\xc3\xa9\\n\xf0\x9f\x98\x80\""));
}

static void test_optional(wc_server *server) {
  CHECK_TEXT(reply_to(server, "optional", NULL), RESULT("\"7 none not given\""));
  CHECK_TEXT(reply_to(server, "optional", "[]"), RESULT("\"7 none not given\""));
  CHECK_TEXT(reply_to(server, "optional", "[1]"), RESULT("\"1 none not given\""));
  CHECK_TEXT(reply_to(server, "optional", "[null, \"t\"]"), RESULT("\"7 t given\""));
  CHECK_TEXT(reply_to(server, "optional", "{\"text\": \"t\"}"), RESULT("\"7 t given\""));
  CHECK_TEXT(reply_to(server, "optional", "[true]"), INVALID("[\"a\"]", "integer", "true"));
}

static void test_refused(wc_server *server) {
  CHECK_TEXT(reply_to(server, "add", NULL), INVALID("[\"a\"]", "integer", "nothing"));
  CHECK_TEXT(reply_to(server, "add", "[1]"), INVALID("[\"b\"]", "integer", "nothing"));
  CHECK_TEXT(reply_to(server, "add", "[1,2,3]"), INVALID("[2]", "nothing", "3"));
  CHECK_TEXT(reply_to(server, "add", "[-1,2,3]"), INVALID("[2]", "nothing", "3"));
  CHECK_TEXT(reply_to(server, "add", "{\"a\":1,\"b\":2,\"c\":3}"), INVALID("[\"c\"]", "nothing", "3"));
  CHECK_TEXT(reply_to(server, "add", "{\"c\":\"x\",\"a\":-1,\"b\":2}"), INVALID("[\"c\"]", "nothing", "\\\"x\\\""));
  CHECK_TEXT(reply_to(server, "add", "{\"a\":1,\"b\":2,\"a\":3}"), INVALID("[\"a\"]", "one value", "3"));
  CHECK_TEXT(reply_to(server, "add", "[1.5,2]"), INVALID("[\"a\"]", "integer", "1.5"));
  CHECK_TEXT(reply_to(server, "change", "[1,2]"), INVALID("[1]", "nothing", "2"));
  CHECK(changes == 0);
  CHECK_TEXT(reply_to(server, "change", "[1]"), RESULT("null"));
  CHECK(changes == 1);
  CHECK_TEXT(reply_to(server, "any", "[1,2]"), RESULT("true"));
  CHECK_TEXT(reply_to(server, "any", "{\"x\":[]}"), RESULT("true"));
}

/* An object has an unknown member anywhere: among 70, of which 64 are told apart by a bit each. */
static void test_seventy(wc_server *server) {
  char params[1000] = "{\"m0\":0";
  size_t size = strlen(params);
  int i;
  for (i = 1; i < 70; ++i) size += (size_t)snprintf(params + size, sizeof params - size, ",\"m%d\":%d", i, i);
  strcpy(params + size, "}");
  CHECK_TEXT(reply_to(server, "seventy", params), RESULT("2415"));
  CHECK_TEXT(reply_to(server, "seventy_backwards", params), RESULT("2415"));
  strcpy(params + size, ",\"m70\":1}");
  CHECK_TEXT(reply_to(server, "seventy", params), INVALID("[\"m70\"]", "nothing", "1"));
  CHECK_TEXT(reply_to(server, "seventy_backwards", params), INVALID("[\"m70\"]", "nothing", "1"));
  strcpy(params + size, ",\"m69\":1}");
  CHECK_TEXT(reply_to(server, "seventy", params), INVALID("[\"m69\"]", "one value", "1"));
}

static void test_many_members(wc_server *server) {
  char params[1024] = "{";
  int i;
  for (i = 0; i != 70; ++i) sprintf(params + strlen(params), "%s\"m%d\":1", i != 0 ? "," : "", i);
  strcat(params, ",\"a\":true,\"b\":2}");
  CHECK_TEXT(reply_to(server, "add", params), INVALID("[\"a\"]", "integer", "true"));
  params[strlen(params) - 1] = ' ';
  CHECK(strstr(strcpy(strstr(params, "true"), "1,\"b\":2}"), "2}") != NULL);
  CHECK_TEXT(reply_to(server, "add", params), INVALID("[\"m0\"]", "nothing", "1"));
}

static void test_cursors(wc_server *server) {
  CHECK_TEXT(reply_to(server, "nested", "[{\"a\":[1,2],\"b\":null,\"c\":[],\"d\":[99,5,[6]],\"e\":[3]}]"), RESULT("105"));
  CHECK_TEXT(reply_to(server, "nested", "[{}]"), RESULT("0"));
  CHECK_TEXT(reply_to(server, "nested", "[[]]"), INVALID("[\"all\"]", "object", "[]"));
  CHECK_TEXT(reply_to(server, "nested", "[{\"a\":[1],\"b\":[1,2,{\"x\":1}]}]"),
             INVALID("[\"all\",\"b\",2]", "integer", "{\\\"x\\\":1}"));
  CHECK_TEXT(reply_to(server, "nested", "{\"all\":{\"a\":5}}"), INVALID("[\"all\",\"a\"]", "array", "5"));
  CHECK_TEXT(reply_to(server, "nested", "[{\"a\":[1]},2]"), INVALID("[1]", "nothing", "2"));
  CHECK_TEXT(reply_to(server, "scaled", "[[1,2,3.5],2]"), RESULT("13"));
  CHECK_TEXT(reply_to(server, "scaled", "{\"factor\":2,\"values\":[1,2,3.5]}"), RESULT("13"));
  CHECK_TEXT(reply_to(server, "scaled", "{\"factor\":\"x\",\"values\":[1]}"), INVALID("[\"factor\"]", "number", "\\\"x\\\""));
}

static void test_declared(wc_server *server) {
  static int64_t ran = 0;
  wc_param params[2] = {{sizeof(wc_param), "count", WC_I64, false, "how many"},
                        {sizeof(wc_param), "text", WC_TEXT, true, NULL}};
  wc_method method;
  memset(&method, 0, sizeof method);
  method.size = sizeof method;
  method.name = "declared";
  method.handler = declared;
  method.user = &ran;
  method.params = params;
  method.param_count = 2;
  CHECK(wc_server_add(server, &method) == WC_OK);
  CHECK_TEXT(reply_to(server, "declared", "[1]"), RESULT("\"-\""));
  CHECK_TEXT(reply_to(server, "declared", "{\"text\":\"t\",\"count\":2}"), RESULT("\"t\""));
  CHECK_TEXT(reply_to(server, "declared", "[1,null]"), RESULT("\"-\""));
  CHECK(ran == 3);
  CHECK_TEXT(reply_to(server, "declared", "[\"1\"]"), INVALID("[\"count\"]", "integer", "\\\"1\\\""));
  CHECK(strstr(reply_to(server, "declared", "{\"count\":1,\"tex\":\"t\"}"), "\"did_you_mean\":\"text\"") != NULL ||
        strstr(reply_to(server, "declared", "{\"count\":1,\"tex\":\"t\"}"), "[\"tex\"]") != NULL);
  CHECK_TEXT(reply_to(server, "declared", "[1,\"t\",3]"), INVALID("[2]", "nothing", "3"));
  CHECK(strstr(reply_to(server, "declared", "[]"), "-32602") != NULL);
  CHECK(ran == 3); /* the handler has not run for what is refused */
  CHECK(strstr(reply_to(server, "rpc.discover", NULL), "\"how many\"") != NULL);
}

/* A program whose header had fewer members: what it does not know is not read. */
static void test_older_sizes(wc_server *server) {
  wc_method method;
  memset(&method, 0x5a, sizeof method);
  method.size = offsetof(wc_method, free_user);
  method.name = "older";
  method.handler = add;
  method.user = NULL;
  CHECK(wc_server_add(server, &method) == WC_OK);
  CHECK_TEXT(reply_to(server, "older", "[1,1]"), RESULT("2"));
  method.size = 0;
  CHECK(wc_server_add(server, &method) == WC_ERROR_ARGUMENT);
  CHECK(strstr(wc_last_error(), "size") != NULL);
}

int main(void) {
  wc_server *server = wc_server_new("{\"explain_errors\": true}");
  CHECK(server != NULL);
  CHECK(wc_server_method(server, "add", add, NULL) == WC_OK);
  CHECK(wc_server_method(server, "add", add, NULL) == -32007);
  CHECK(wc_server_method(server, "backwards", backwards, NULL) == WC_OK);
  CHECK(wc_server_method(server, "u64", u64, NULL) == WC_OK);
  CHECK(wc_server_method(server, "f64", f64, NULL) == WC_OK);
  CHECK(wc_server_method(server, "boolean", boolean, NULL) == WC_OK);
  CHECK(wc_server_method(server, "bytes", bytes, NULL) == WC_OK);
  CHECK(wc_server_method(server, "json", json, NULL) == WC_OK);
  CHECK(wc_server_method(server, "optional", optional, NULL) == WC_OK);
  CHECK(wc_server_method(server, "seventy", seventy, NULL) == WC_OK);
  CHECK(wc_server_method(server, "seventy_backwards", seventy, server) == WC_OK);
  CHECK(wc_server_method(server, "nested", nested, NULL) == WC_OK);
  CHECK(wc_server_method(server, "scaled", scaled, NULL) == WC_OK);
  CHECK(wc_server_method(server, "change", change, NULL) == WC_OK);
  CHECK(wc_server_method(server, "any", any, NULL) == WC_OK);
  CHECK(wc_server_method(server, "rpc.mine", any, NULL) == WC_ERROR_ARGUMENT);
  CHECK(wc_server_method(server, "none", NULL, NULL) == WC_ERROR_ARGUMENT);
  test_positions_and_names(server);
  test_types(server);
  test_optional(server);
  test_refused(server);
  test_seventy(server);
  test_many_members(server);
  test_cursors(server);
  test_declared(server);
  test_older_sizes(server);
  wc_server_free(server);
  return 0;
}
