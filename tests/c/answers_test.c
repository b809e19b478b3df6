/* What a handler answers: results, errors, the first of several, later ones from other threads, and what it knows of its
 * call. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <pthread.h>
#include <semaphore.h>

#include "check.h"

static void results(wc_call *call, void *user) {
  int64_t which;
  (void)user;
  if (!wc_param_i64(call, 0, "which", &which)) return;
  switch (which) {
    case 0: return; /* null */
    case 1: wc_result_null(call); return;
    case 2: wc_result_f64(call, NAN); return;
    case 3: wc_result_text(call, "\xff", 1); return;
    case 4: wc_result_json(call, "{\"a\": 1} x", 10); return;
    case 5: wc_result_json(call, " [1,\n 2] ", 9); return;
    case 6: wc_result_i64(call, 1); wc_result_i64(call, 2); wc_error(call, 5, "late", NULL); return;
    case 7: wc_error(call, 5, "early", "{\"why\": [1]}"); wc_result_i64(call, 1); return;
    case 8: wc_error(call, -32005, NULL, NULL); return;
    case 9: wc_error(call, 5, "m", "no JSON"); return;
    case 10: wc_result_text(call, "a\0b", 3); return;
    case 11: wc_result_i64(call, INT64_MIN); return;
    default: wc_result_json(call, "", 0);
  }
}

static void fails_then_answers(wc_call *call, void *user) {
  int64_t a;
  (void)user;
  if (!wc_param_i64(call, 0, "a", &a)) wc_result_text(call, "ignored", 7);
  wc_error(call, 5, "ignored", NULL);
}

/* A message within a message is refused, and the outer one goes on. */
static void handles_another(wc_call *call, void *server) {
  const char *reply;
  size_t size;
  CHECK(wc_server_handle(server, "1", 1, &reply, &size) == WC_ERROR_STATE);
  CHECK(size == 0);
  wc_result_i64(call, 3);
}

static void test_results(wc_server *server) {
  const char *internal = ERROR_WITH("-32603", "Internal error", "");
  CHECK_TEXT(reply_to(server, "results", "[0]"), RESULT("null"));
  CHECK_TEXT(reply_to(server, "results", "[1]"), RESULT("null"));
  CHECK_TEXT(reply_to(server, "results", "[2]"), internal);
  CHECK_TEXT(reply_to(server, "results", "[3]"), internal);
  CHECK_TEXT(reply_to(server, "results", "[4]"), internal);
  CHECK_TEXT(reply_to(server, "results", "[5]"), RESULT("[1,2]"));
  CHECK_TEXT(reply_to(server, "results", "[6]"), RESULT("1"));
  CHECK_TEXT(reply_to(server, "results", "[7]"), ERROR_WITH("5", "early", ",\"data\":{\"why\":[1]}"));
  CHECK(strstr(reply_to(server, "results", "[8]"), "\"code\":-32005") != NULL);
  CHECK_TEXT(reply_to(server, "results", "[9]"), ERROR_WITH("5", "m", ""));
  CHECK_TEXT(reply_to(server, "results", "[10]"), RESULT("\"a\\u0000b\""));
  CHECK_TEXT(reply_to(server, "results", "[11]"), RESULT("-9223372036854775808"));
  CHECK_TEXT(reply_to(server, "results", "[12]"), internal);
  CHECK_TEXT(reply_to(server, "handles_another", NULL), RESULT("3"));
  CHECK_TEXT(reply_to(server, "fails_then_answers", "[true]"), INVALID("[\"a\"]", "integer", "true"));
}

/* ---- deferred ---- */

static wc_call *kept;
static sem_t deferred_once;

static void defer(wc_call *call, void *user) {
  (void)user;
  kept = wc_call_defer(call);
  CHECK(kept != NULL);
  CHECK(wc_call_defer(call) == NULL && wc_last_status() == WC_ERROR_STATE);
  CHECK(wc_call_defer(kept) == NULL);
  wc_result_text(call, "not this one", 12);
  sem_post(&deferred_once);
}

/* Within wc_server_handle nobody can wait: what has an answer when the handler returns has that, the rest is cancelled. */
static void answers_at_once(wc_call *call, void *user) {
  int64_t a;
  wc_call *later = wc_call_defer(call);
  (void)user;
  if (wc_param_i64(later, 0, "a", &a)) wc_result_i64(later, a);
  wc_result_i64(later, a + 1);
  wc_call_release(later);
}

static void test_deferred_without_a_loop(wc_server *server) {
  CHECK_TEXT(reply_to(server, "answers_at_once", "[5]"), RESULT("5"));
  CHECK_TEXT(reply_to(server, "answers_at_once", "[true]"), INVALID("[\"a\"]", "integer", "true"));
  CHECK_TEXT(reply_to(server, "answers_at_once", "[5,6]"), INVALID("[1]", "nothing", "6"));
  CHECK(strstr(reply_to(server, "defer", NULL), "-32800") != NULL);
  CHECK_TEXT(wc_call_method(kept), "defer");
  wc_result_i64(kept, 1);
  wc_call_release(kept);
}

static void *run(void *server) {
  CHECK(wc_server_run_without_signals(server) == WC_OK);
  return NULL;
}

static void *answer(void *call) {
  wc_result_i64(call, 1);
  return NULL;
}

/* A reply that is waited for by the thread that got it. */
struct waited {
  sem_t done;
  int error;
  char json[64];
};
static void done(const wc_reply *reply, void *user) {
  struct waited *waited = user;
  const char *json = wc_reply_json(reply, NULL);
  waited->error = wc_reply_error(reply);
  snprintf(waited->json, sizeof waited->json, "%s", json != NULL ? json : "");
  sem_post(&waited->done);
}
static void start(wc_client *client, const char *method, const char *params, const wc_call_options *options,
                  struct waited *waited, wc_pending **pending) {
  sem_init(&waited->done, 0, 0);
  CHECK(wc_client_start(client, method, params, options, done, waited, pending) == WC_OK);
}

static void test_deferred(wc_client *client) {
  struct waited waited;
  pthread_t threads[8];
  wc_pending *pending;
  int i;
  /* Eight threads answer at once: one answer is sent. */
  start(client, "defer", NULL, NULL, &waited, NULL);
  sem_wait(&deferred_once);
  for (i = 0; i != 8; ++i) CHECK(pthread_create(&threads[i], NULL, answer, kept) == 0);
  for (i = 0; i != 8; ++i) pthread_join(threads[i], NULL);
  wc_call_release(kept);
  sem_wait(&waited.done);
  CHECK(waited.error == 0);
  CHECK_TEXT(waited.json, "1");
  /* One that is dropped. */
  start(client, "defer", NULL, NULL, &waited, NULL);
  sem_wait(&deferred_once);
  CHECK_TEXT(wc_call_method(kept), "defer");
  CHECK(wc_call_id(kept) != NULL);
  wc_call_release(kept);
  sem_wait(&waited.done);
  CHECK(waited.error == -32603);
  /* One whose caller gives it up: its handler sees that, and its answer is no more sent. */
  start(client, "defer", NULL, NULL, &waited, &pending);
  sem_wait(&deferred_once);
  CHECK(!wc_call_cancelled(kept));
  CHECK(wc_pending_cancel(pending));
  CHECK(!wc_pending_cancel(pending));
  wc_pending_free(pending);
  sem_wait(&waited.done);
  CHECK(waited.error == -32800);
  while (!wc_call_cancelled(kept)) {
    wc_reply_free(wc_client_call(client, "results", "[0]", NULL)); /* the cancellation has come before it */
  }
  wc_result_i64(kept, 1);
  wc_call_release(kept);
}

/* ---- what a handler knows of its call ---- */

static void remaining(wc_call *call, void *user) {
  (void)user;
  wc_result_i64(call, wc_call_remaining_ns(call));
}

/* Returns once its caller has given it up; it has lost its loop by then. */
static sem_t runs;
static void until_cancelled(wc_call *call, void *user) {
  (void)user;
  sem_post(&runs);
  while (!wc_call_cancelled(call)) sched_yield();
  wc_result_null(call);
  sem_post(&runs);
}
/* The same, but asks for the first time when its caller has gone already. */
static sem_t gone;
static void asks_late(wc_call *call, void *user) {
  (void)user;
  sem_post(&runs);
  sem_wait(&gone);
  CHECK(wc_call_cancelled(call));
  CHECK_TEXT(wc_call_method(call), "asks_late");
  sem_post(&runs);
}
/* Says after it has lost its loop what it has read before, and answers. */
static void slow(wc_call *call, void *user) {
  const char *text;
  size_t size;
  (void)user;
  if (!wc_param_text(call, 0, "text", &text, &size)) return;
  sem_post(&runs);
  sem_wait(&gone);
  wc_result_text(call, text, size);
}

static void test_knows(wc_client *client) {
  wc_call_options options;
  struct waited waited;
  wc_pending *pending;
  wc_reply *reply;
  int64_t left = 0;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.timeout_ms = 60000;
  reply = wc_client_call(client, "remaining", NULL, &options);
  CHECK(wc_reply_i64(reply, &left));
  CHECK(left > 0 && left <= 60000 * INT64_C(1000000));
  wc_reply_free(reply);
  options.timeout_ms = -1;
  reply = wc_client_call(client, "remaining", NULL, &options);
  CHECK(wc_reply_error(reply) == -32002);
  wc_reply_free(reply);

  start(client, "until_cancelled", NULL, NULL, &waited, &pending);
  sem_wait(&runs);
  CHECK(wc_pending_cancel(pending));
  wc_pending_free(pending);
  sem_wait(&waited.done);
  sem_wait(&runs);

  start(client, "asks_late", NULL, NULL, &waited, &pending);
  sem_wait(&runs);
  CHECK(wc_pending_cancel(pending));
  wc_pending_free(pending);
  sem_wait(&waited.done);
  wc_reply_free(wc_client_call(client, "results", "[0]", NULL)); /* another thread has the loop, and has seen it */
  sem_post(&gone);
  sem_wait(&runs);

  start(client, "slow", "[\"plain\"]", NULL, &waited, NULL);
  sem_wait(&runs);
  wc_reply_free(wc_client_call(client, "results", "[0]", NULL)); /* the loop goes on without the handler */
  sem_post(&gone);
  sem_wait(&waited.done);
  CHECK(waited.error == 0);
  CHECK_TEXT(waited.json, "\"plain\"");
}

/* What `done` is called with may have been answered before wc_client_start returns. */
struct owned {
  wc_pending *pending;
  sem_t done;
};
static void frees(const wc_reply *reply, void *user) {
  struct owned *owned = user;
  CHECK(wc_reply_error(reply) == 0);
  CHECK(owned->pending != NULL);
  wc_pending_free(owned->pending);
  sem_post(&owned->done);
}
static void test_pending_is_there_before_the_reply(wc_client *client) {
  int i;
  for (i = 0; i != 500; ++i) {
    struct owned owned;
    owned.pending = NULL;
    sem_init(&owned.done, 0, 0);
    CHECK(wc_client_start(client, "results", "[0]", NULL, frees, &owned, &owned.pending) == WC_OK);
    sem_wait(&owned.done);
  }
}

/* A text lasts as long as its reply, whatever is read from that afterwards. */
static void test_texts_last(wc_client *client) {
  wc_reply *reply = wc_client_call(client, "texts", NULL, NULL);
  wc_cursor first = WC_CURSOR_INIT, second = WC_CURSOR_INIT;
  const char *one, *two;
  size_t size;
  int64_t none;
  CHECK(wc_reply_array(reply, &first) && wc_cursor_next(&first) && wc_cursor_text(&first, &one, &size));
  CHECK(size == 3 && memcmp(one, "a\n0", 3) == 0);
  CHECK(!wc_reply_i64(reply, &none));
  CHECK(wc_reply_array(reply, &second) && wc_cursor_next(&second) && wc_cursor_next(&second));
  CHECK(wc_cursor_text(&second, &two, &size) && size == 3 && memcmp(two, "b\n1", 3) == 0);
  CHECK(memcmp(one, "a\n0", 3) == 0);
  wc_reply_free(reply);
}
static void texts(wc_call *call, void *user) {
  (void)user;
  wc_result_json(call, "[\"a\\n0\",\"b\\n1\"]", 15);
}

/* ---- blocking ---- */

static pthread_barrier_t both;
static void meets(wc_call *call, void *user) {
  (void)call;
  (void)user;
  pthread_barrier_wait(&both); /* two of these at once, or it would wait for ever */
}
static void deferred_in_pool(wc_call *call, void *user) {
  int64_t a;
  wc_call *later = wc_call_defer(call);
  (void)user;
  CHECK(later == call); /* its own copy already, which can be answered still */
  CHECK(wc_call_defer(call) == NULL && wc_last_status() == WC_ERROR_STATE);
  if (wc_param_i64(later, 0, "a", &a)) wc_result_i64(call, a);
  wc_call_release(later);
}
static void test_blocking(wc_client *client) {
  struct waited first, second;
  wc_reply *reply;
  start(client, "meets", NULL, NULL, &first, NULL);
  start(client, "meets", NULL, NULL, &second, NULL);
  sem_wait(&first.done);
  sem_wait(&second.done);
  CHECK(first.error == 0 && second.error == 0);
  CHECK_TEXT(first.json, "null");
  reply = wc_client_call(client, "deferred_in_pool", "[4]", NULL);
  CHECK_TEXT(wc_reply_json(reply, NULL), "4");
  wc_reply_free(reply);
  reply = wc_client_call(client, "deferred_in_pool", "[\"4\"]", NULL);
  CHECK(wc_reply_error(reply) == -32602);
  CHECK(strstr(wc_reply_data(reply), "\"loc\":[\"a\"]") != NULL);
  wc_reply_free(reply);
}

static int freed = 0;
static void free_user(void *user) { freed += *(int *)user; }

int main(void) {
  static int one = 1;
  pthread_t thread;
  struct waited waited;
  wc_client *client;
  wc_method method;
  wc_server *server = wc_server_new("{\"takeover_ms\": 1}");
  CHECK(server != NULL);
  sem_init(&deferred_once, 0, 0);
  sem_init(&runs, 0, 0);
  sem_init(&gone, 0, 0);
  CHECK(pthread_barrier_init(&both, NULL, 2) == 0);
  CHECK(wc_server_method(server, "results", results, NULL) == WC_OK);
  CHECK(wc_server_method(server, "handles_another", handles_another, server) == WC_OK);
  CHECK(wc_server_method(server, "fails_then_answers", fails_then_answers, NULL) == WC_OK);
  CHECK(wc_server_method(server, "defer", defer, NULL) == WC_OK);
  CHECK(wc_server_method(server, "answers_at_once", answers_at_once, NULL) == WC_OK);
  CHECK(wc_server_method(server, "remaining", remaining, NULL) == WC_OK);
  CHECK(wc_server_method(server, "texts", texts, NULL) == WC_OK);
  CHECK(wc_server_method(server, "until_cancelled", until_cancelled, NULL) == WC_OK);
  CHECK(wc_server_method(server, "asks_late", asks_late, NULL) == WC_OK);
  CHECK(wc_server_method(server, "slow", slow, NULL) == WC_OK);
  memset(&method, 0, sizeof method);
  method.size = sizeof method;
  method.user = &one;
  method.free_user = free_user;
  method.blocking = true;
  method.name = "meets";
  method.handler = meets;
  CHECK(wc_server_add(server, &method) == WC_OK);
  CHECK(wc_server_add(server, &method) == -32007);
  CHECK(freed == 0); /* the caller's, where it has not been added */
  method.name = "deferred_in_pool";
  method.handler = deferred_in_pool;
  CHECK(wc_server_add(server, &method) == WC_OK);

  test_results(server);
  test_deferred_without_a_loop(server);
  sem_wait(&deferred_once);

  CHECK(wc_server_listen(server, "tcp://127.0.0.1:0") == WC_OK);
  CHECK(wc_server_endpoint(server, 1) == NULL);
  CHECK(pthread_create(&thread, NULL, run, server) == 0);
  client = wc_client_new(wc_server_endpoint(server, 0), NULL);
  CHECK(client != NULL);
  test_deferred(client);
  test_knows(client);
  test_pending_is_there_before_the_reply(client);
  test_texts_last(client);
  test_blocking(client);

  /* A call that is deferred when its server has gone can still be answered, for nobody. */
  start(client, "defer", NULL, NULL, &waited, NULL);
  sem_wait(&deferred_once);
  wc_client_free(client);
  wc_server_stop(server);
  pthread_join(thread, NULL);
  wc_server_free(server);
  CHECK(freed == 2);
  wc_result_i64(kept, 1);
  wc_call_release(kept);
  return 0;
}
