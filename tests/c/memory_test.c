/* Reading parameters allocates nothing; and where there is no memory, each function says so and leaves all as it was.
 * Every way to the heap passes through this program, the library's as well. */
#include "check.h"

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);

static long allocations = 0;
static long left = -1; /* that succeed; below 0 for all */

static int succeeds(void) {
  ++allocations;
  if (left < 0) return 1;
  if (left == 0) return 0;
  --left;
  return 1;
}
void *malloc(size_t size) { return succeeds() ? __libc_malloc(size) : NULL; }
void *calloc(size_t count, size_t size) { return succeeds() ? __libc_calloc(count, size) : NULL; }
void *realloc(void *block, size_t size) { return succeeds() ? __libc_realloc(block, size) : NULL; }

static long read_in; /* allocations while the parameters were read */

static void reads_all(wc_call *call, void *user) {
  const long before = allocations;
  wc_cursor list = WC_CURSOR_INIT, object = WC_CURSOR_INIT;
  int64_t i;
  double d;
  bool b;
  const char *text;
  const void *bytes;
  size_t size;
  (void)user;
  if (!wc_param_i64(call, 0, "i", &i) || !wc_param_f64(call, 1, "d", &d) || !wc_param_bool(call, 2, "b", &b) ||
      !wc_param_text(call, 3, "plain", &text, &size) || !wc_param_text(call, 4, "escaped", &text, &size) ||
      !wc_param_bytes(call, 5, "bytes", &bytes, &size) || !wc_param_array(call, 6, "list", &list))
    return;
  while (wc_cursor_next(&list)) {
    if (!wc_cursor_i64(&list, &i)) return;
  }
  if (!wc_param_object(call, 7, "object", &object)) return;
  while (wc_cursor_next(&object)) {
    if (!wc_cursor_json(&object, &text, &size)) return;
  }
  /* out of order, and one that is not there */
  if (!wc_param_text(call, 3, "plain", &text, &size) || !wc_param_opt_i64(call, 8, "no", &i) || !wc_params_end(call)) return;
  read_in = allocations - before;
  wc_result_i64(call, i);
}

/* Whether a string without escapes is a view into the message, which has quotes around it. */
static void is_view(wc_call *call, void *user) {
  const char *text;
  size_t size;
  (void)user;
  if (!wc_param_text(call, 0, "text", &text, &size)) return;
  wc_result_bool(call, size == 5 && memcmp(text, "plain", 5) == 0 && text[-1] == '"' && text[5] == '"');
}

static const char kByPosition[] =
    "[1,2.5,true,\"plain\",\"a\\u00e9\\n\",{\"$bytes\":\"AAEC\"},[1,2,3],{\"a\":{\"b\":1},\"c\":[2]}]";
static const char kByName[] =
    "{\"object\":{\"a\":{\"b\":1},\"c\":[2]},\"list\":[1,2,3],\"bytes\":{\"$bytes\":\"AAEC\"},\"escaped\":\"a\\u00e9\\n\","
    "\"plain\":\"plain\",\"b\":true,\"d\":2.5,\"i\":1}";

static void test_no_allocation(wc_server *server) {
  const char *const params[] = {kByPosition, kByName};
  int which, i;
  for (which = 0; which != 2; ++which) {
    for (i = 0; i != 3; ++i) { /* the first fills what is kept */
      read_in = -1;
      CHECK_TEXT(reply_to(server, "reads_all", params[which]), RESULT("3"));
    }
    CHECK(read_in == 0);
  }
  CHECK_TEXT(reply_to(server, "is_view", "[\"plain\"]"), RESULT("true"));
}

static void keep_and_answer(wc_call *call, void *user) {
  wc_call *later = wc_call_defer(call);
  (void)user;
  if (later == NULL) return;
  wc_result_text(later, "an answer that does not fit a short string", 42);
  wc_call_release(later);
}

/* One call, with the n-th allocation failing, for each n until none fails. */
static void test_handle(wc_server *server, const char *request, const char *wanted) {
  int n;
  for (n = 0;; ++n) {
    const char *reply;
    size_t size;
    int status;
    left = n;
    status = wc_server_handle(server, request, strlen(request), &reply, &size);
    if (left > 0) {
      left = -1;
      CHECK(status == WC_OK);
      CHECK_TEXT(reply, wanted);
      break;
    }
    left = -1;
    CHECK(status == WC_OK || status == WC_ERROR_MEMORY);
    if (status == WC_ERROR_MEMORY) CHECK(wc_last_status() == WC_ERROR_MEMORY);
    CHECK(n < 10000);
  }
  /* All is as it was. */
  CHECK_TEXT(reply_to(server, "is_view", "[\"plain\"]"), RESULT("true"));
}

static void test_making(void) {
  int n;
  for (n = 0;; ++n) {
    wc_server *server;
    wc_client *client = NULL;
    int status = WC_OK;
    left = n;
    server = wc_server_new("{\"port\": 0}");
    if (server != NULL) status = wc_server_method(server, "a_name_that_fits_no_short_string", is_view, NULL);
    if (server != NULL && status == WC_OK) client = wc_client_new("tcp://127.0.0.1:1", "{\"client_id\": \"c\"}");
    if (left > 0) {
      left = -1;
      CHECK(server != NULL && status == WC_OK && client != NULL);
      wc_client_free(client);
      wc_server_free(server);
      break;
    }
    left = -1;
    if (server == NULL) {
      CHECK(wc_last_status() == WC_ERROR_MEMORY);
    } else if (status != WC_OK) {
      CHECK(status == WC_ERROR_MEMORY);
      CHECK(wc_server_method(server, "a_name_that_fits_no_short_string", is_view, NULL) == WC_OK);
    } else if (client == NULL) {
      CHECK(wc_last_status() == WC_ERROR_MEMORY);
    }
    wc_client_free(client);
    wc_server_free(server);
    CHECK(n < 10000);
  }
}

int main(void) {
  wc_server *server = wc_server_new(NULL);
  CHECK(server != NULL);
  CHECK(wc_server_method(server, "reads_all", reads_all, NULL) == WC_OK);
  CHECK(wc_server_method(server, "is_view", is_view, NULL) == WC_OK);
  CHECK(wc_server_method(server, "keep_and_answer", keep_and_answer, NULL) == WC_OK);
  test_no_allocation(server);
  test_handle(server, "{\"jsonrpc\":\"2.0\",\"method\":\"keep_and_answer\",\"id\":1}",
              RESULT("\"an answer that does not fit a short string\""));
  test_handle(server, "{\"jsonrpc\":\"2.0\",\"method\":\"is_view\",\"params\":[5],\"id\":1}",
              INVALID("[\"text\"]", "string", "5"));
  test_handle(server, "{\"jsonrpc\":\"2.0\",\"method\":\"is_view\",\"params\":[\"plain\",[\"a longer one than fits\"]],\"id\":1}",
              INVALID("[1]", "nothing", "[\\\"a longer one than fits\\\"]"));
  wc_server_free(server);
  test_making();
  return 0;
}
