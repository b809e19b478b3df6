/* A broker and its clients: provide, call, subscribe, publish; the outcome of a call as values; logs; what is refused. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <semaphore.h>

#include "check.h"

static void *run(void *server) {
  CHECK(wc_server_run_without_signals(server) == WC_OK);
  return NULL;
}

static void area(wc_call *call, void *user) {
  double width, height;
  ++*(int *)user;
  if (wc_param_f64(call, 0, "width", &width) && wc_param_f64(call, 1, "height", &height))
    wc_result_f64(call, width * height);
}

/* Answers later, from the thread that it starts. */
static void *answer(void *call) {
  static const char json[] = "{\"list\": [1, 2, 3], \"text\": \"a\\tb\", \"none\": null, \"yes\": true}";
  wc_result_json(call, json, sizeof json - 1);
  wc_call_release(call);
  return NULL;
}
static pthread_t answering;
static void later(wc_call *call, void *user) {
  (void)user;
  CHECK(pthread_create(&answering, NULL, answer, wc_call_defer(call)) == 0);
}

static void fails(wc_call *call, void *user) {
  int64_t code = 17;
  (void)user;
  if (wc_param_opt_i64(call, 0, "code", &code)) wc_error(call, (int)code, "no", "[1]");
}

/* Calls another method as a part of its own call. */
static wc_client *inner;
static void within(wc_call *call, void *user) {
  wc_call_options options;
  wc_reply *reply;
  (void)user;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.within = call;
  reply = wc_client_call(inner, "area", "[2, 3]", &options);
  wc_result_json(call, wc_reply_json(reply, NULL), strlen(wc_reply_json(reply, NULL)));
  wc_reply_free(reply);
}

struct event {
  sem_t came;
  char topic[32];
  char json[64];
};
static void on_event(const char *topic, const char *json, size_t size, void *user) {
  struct event *event = user;
  CHECK(strlen(json) == size);
  snprintf(event->topic, sizeof event->topic, "%s", topic);
  snprintf(event->json, sizeof event->json, "%s", json);
  sem_post(&event->came);
}

static int records;
static pthread_mutex_t logging = PTHREAD_MUTEX_INITIALIZER;
static void on_log(const wc_log_record *record, void *user) {
  pthread_mutex_lock(&logging);
  CHECK(user == &records && record->size >= sizeof *record);
  CHECK(record->message[0] != '\0' && record->json[0] == '{');
  ++records;
  pthread_mutex_unlock(&logging);
}

static wc_method method_of(const char *name, wc_handler handler, void *user) {
  wc_method method;
  memset(&method, 0, sizeof method);
  method.size = sizeof method;
  method.name = name;
  method.handler = handler;
  method.user = user;
  return method;
}

static void test_reply(wc_client *client) {
  wc_cursor members = WC_CURSOR_INIT, list = WC_CURSOR_INIT;
  const char *text;
  size_t size;
  int64_t number, sum = 0;
  int count = 0;
  bool yes = false;
  wc_reply *reply = wc_client_call(client, "later", NULL, NULL);
  pthread_join(answering, NULL);
  CHECK(wc_reply_error(reply) == 0);
  CHECK_TEXT(wc_reply_message(reply), "");
  CHECK(wc_reply_data(reply) == NULL);
  CHECK(!wc_reply_i64(reply, &number));
  CHECK(strstr(wc_last_error(), "integer") != NULL);
  CHECK(wc_reply_object(reply, &members));
  while (wc_cursor_next(&members)) {
    CHECK(wc_cursor_key(&members, &text, &size));
    if (count == 0) {
      CHECK(size == 4 && memcmp(text, "list", 4) == 0);
      CHECK(wc_cursor_array(&members, &list));
      while (wc_cursor_next(&list)) {
        CHECK(wc_cursor_i64(&list, &number));
        sum += number;
      }
    } else if (count == 1) {
      CHECK(wc_cursor_text(&members, &text, &size) && size == 3 && memcmp(text, "a\tb", 3) == 0);
    } else if (count == 2) {
      CHECK(wc_cursor_is_null(&members));
    } else {
      CHECK(wc_cursor_bool(&members, &yes));
    }
    ++count;
  }
  CHECK(sum == 6 && count == 4 && yes);
  wc_reply_free(reply);

  reply = wc_client_call(client, "fails", NULL, NULL);
  CHECK(wc_reply_error(reply) == 17);
  CHECK_TEXT(wc_reply_message(reply), "no");
  CHECK_TEXT(wc_reply_data(reply), "[1]");
  CHECK(wc_reply_json(reply, &size) == NULL && size == 0);
  CHECK(!wc_reply_i64(reply, &number) && wc_last_status() == 17);
  wc_reply_free(reply);

  /* An error is no result, whatever its code. */
  reply = wc_client_call(client, "fails", "[0]", NULL);
  CHECK(wc_reply_error(reply) == WC_ERROR_INTERNAL);
  CHECK(wc_reply_json(reply, NULL) == NULL && !wc_reply_i64(reply, &number) && !wc_reply_object(reply, &members));
  CHECK_TEXT(wc_reply_message(reply), "no");
  wc_reply_free(reply);

  reply = wc_client_call(client, "area", "no JSON", NULL);
  CHECK(wc_reply_error(reply) == -32602);
  wc_reply_free(reply);
}

static void test_events(wc_client *subscriber, wc_client *publisher) {
  struct event event;
  size_t receivers = 0;
  wc_subscription *subscription;
  sem_init(&event.came, 0, 0);
  CHECK(wc_client_subscribe(subscriber, "a..b", NULL, on_event, &event) == NULL);
  CHECK(wc_last_status() == WC_ERROR_ARGUMENT);
  CHECK(wc_client_subscribe(subscriber, "news.*", "{\"lost\": true}", on_event, &event) == NULL);
  CHECK(wc_last_status() == WC_ERROR_ARGUMENT);
  CHECK(wc_client_publish(publisher, "news.old", "\"kept\"", true, NULL) == WC_OK);
  subscription = wc_client_subscribe(subscriber, "news.*", "{\"last\": true}", on_event, &event);
  CHECK(subscription != NULL);
  CHECK(wc_client_connect(subscriber) == WC_OK);
  sem_wait(&event.came);
  CHECK_TEXT(event.topic, "news.old");
  CHECK_TEXT(event.json, "\"kept\"");
  CHECK(wc_client_publish(publisher, "news.today", " {\"n\": 1} ", false, &receivers) == WC_OK);
  CHECK(receivers == 1);
  sem_wait(&event.came);
  CHECK_TEXT(event.topic, "news.today");
  CHECK_TEXT(event.json, "{\"n\":1}");
  CHECK(wc_client_publish(publisher, "news.today", "{", false, NULL) == WC_ERROR_ARGUMENT);
  CHECK(wc_client_publish(publisher, "news.today", NULL, false, &receivers) == WC_OK && receivers == 1);
  sem_wait(&event.came);
  CHECK_TEXT(event.json, "null");
  wc_subscription_free(subscription);
}

int main(void) {
  static int areas = 0;
  pthread_t thread;
  wc_method method;
  wc_client *provider, *client;
  wc_reply *reply;
  wc_call_options options;
  wc_server *broker = wc_broker_new("{\"log_level\": \"debug\"}");
  CHECK(broker != NULL);
  CHECK(wc_server_log(broker, on_log, &records) == WC_OK);
  CHECK(wc_server_method(broker, "within", within, NULL) == WC_OK);
  CHECK(wc_server_listen(broker, "tcp://127.0.0.1:0") == WC_OK);
  CHECK(wc_server_listen(broker, wc_server_endpoint(broker, 0)) == WC_ERROR_SYSTEM);
  CHECK(wc_server_listen(broker, "nonsense") == WC_ERROR_ARGUMENT);
  CHECK(pthread_create(&thread, NULL, run, broker) == 0);

  provider = wc_client_new(wc_server_endpoint(broker, 0), "{\"client_id\": \"shapes\"}");
  method = method_of("area", area, &areas);
  method.summary = "width times height";
  CHECK(wc_client_provide(provider, &method, "{\"concurrency\": 0.5}") == WC_ERROR_ARGUMENT);
  CHECK(wc_client_provide(provider, &method, "{\"concurrency\": 4, \"idempotent\": true}") == WC_OK);
  method = method_of("later", later, NULL);
  CHECK(wc_client_provide(provider, &method, NULL) == WC_OK);
  method = method_of("fails", fails, NULL);
  CHECK(wc_client_provide(provider, &method, NULL) == WC_OK);
  CHECK(wc_client_connect(provider) == WC_OK);

  client = inner = wc_client_new(wc_server_endpoint(broker, 0), NULL);
  reply = wc_client_call(client, "area", "{\"height\": 3, \"width\": 2}", NULL);
  CHECK_TEXT(wc_reply_json(reply, NULL), "6");
  wc_reply_free(reply);
  reply = wc_client_call(client, "within", NULL, NULL);
  CHECK_TEXT(wc_reply_json(reply, NULL), "6");
  wc_reply_free(reply);
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.to = "nobody";
  reply = wc_client_call(client, "area", "[2, 3]", &options);
  CHECK(wc_reply_error(reply) == -32001);
  wc_reply_free(reply);
  options.to = "shapes";
  reply = wc_client_call(client, "area", "[2, 3]", &options);
  CHECK(wc_reply_error(reply) == 0);
  wc_reply_free(reply);
  CHECK(areas == 3);
  CHECK(wc_client_notify(client, "area", "[2, 3]") == WC_OK);
  CHECK(wc_client_notify(client, "area", "2") == -32602);

  test_reply(client);
  test_events(client, provider);

  CHECK(wc_client_unprovide(provider, "area") == WC_OK);
  CHECK(wc_client_unprovide(provider, "area") == WC_ERROR_ARGUMENT);
  reply = wc_client_call(provider, "rpc.ping", NULL, NULL); /* the broker has seen what came before it */
  wc_reply_free(reply);
  reply = wc_client_call(client, "area", "[2, 3]", NULL);
  CHECK(wc_reply_error(reply) == -32601);
  wc_reply_free(reply);

  wc_client_free(client);
  wc_client_free(provider);
  wc_server_stop(broker);
  pthread_join(thread, NULL);
  wc_server_free(broker);
  CHECK(records > 0);

  CHECK(wc_client_new("nonsense", NULL) == NULL && wc_last_status() == WC_ERROR_ARGUMENT);
  CHECK(wc_server_new("{\"port\": -1}") == NULL && wc_last_status() == WC_ERROR_ARGUMENT);
  CHECK(strstr(wc_last_error(), "port") != NULL);
  CHECK(wc_client_call(NULL, "x", NULL, NULL) == NULL && wc_last_status() == WC_ERROR_ARGUMENT);
  CHECK(wc_server_run(NULL) == WC_ERROR_ARGUMENT);
  /* What is NULL is nothing to give back. */
  wc_server_free(NULL);
  wc_client_free(NULL);
  wc_reply_free(NULL);
  wc_pending_free(NULL);
  wc_subscription_free(NULL);
  wc_call_release(NULL);
  CHECK(wc_abi_version() == WC_ABI_VERSION);
  CHECK(wc_version()[0] != '\0');
  return 0;
}
