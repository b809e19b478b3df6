/* Clients of a broker in C: one provides a method and listens to a topic, another calls it and publishes. docs/c.md. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <wirecall.h>

/* What the events' thread tells the main one. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t came = PTHREAD_COND_INITIALIZER;
static char news[64];

static void area(wc_call *call, void *user) {
  double width, height;
  (void)user;
  if (wc_param_f64(call, 0, "width", &width) && wc_param_f64(call, 1, "height", &height))
    wc_result_f64(call, width * height);
}

static void on_news(const char *topic, const char *json, size_t size, void *user) {
  (void)user;
  pthread_mutex_lock(&mutex);
  snprintf(news, sizeof news, "%s: %.*s", topic, (int)size, json);
  pthread_cond_signal(&came);
  pthread_mutex_unlock(&mutex);
}

static void *run(void *server) {
  wc_server_run_without_signals(server);
  return NULL;
}

static int failed(const char *what) {
  fprintf(stderr, "%s: %s\n", what, wc_last_error());
  return 1;
}

int main(void) {
  pthread_t thread;
  double answer = 0;
  int right;
  wc_method method;
  wc_client *shapes, *caller;
  wc_subscription *subscription;
  wc_reply *reply;
  wc_server *broker = wc_broker_new("{\"log_level\": \"warning\"}");
  if (broker == NULL || wc_server_listen(broker, "tcp://127.0.0.1:0") != WC_OK) return failed("the broker");
  pthread_create(&thread, NULL, run, broker);

  shapes = wc_client_new(wc_server_endpoint(broker, 0), "{\"client_id\": \"shapes\"}");
  memset(&method, 0, sizeof method);
  method.size = sizeof method;
  method.name = "shapes.area";
  method.handler = area;
  method.summary = "width times height";
  if (wc_client_provide(shapes, &method, "{\"concurrency\": 4}") != WC_OK) return failed("provide");
  subscription = wc_client_subscribe(shapes, "news.*", NULL, on_news, NULL);
  if (subscription == NULL || wc_client_connect(shapes) != WC_OK) return failed("connect");

  caller = wc_client_new(wc_server_endpoint(broker, 0), NULL);
  reply = wc_client_call(caller, "shapes.area", "{\"width\": 2, \"height\": 3.5}", NULL);
  right = wc_reply_f64(reply, &answer) && answer == 7;
  printf("shapes.area: %g\n", answer);
  wc_reply_free(reply);

  if (wc_client_publish(caller, "news.today", "{\"n\": 1}", false, NULL) != WC_OK) return failed("publish");
  pthread_mutex_lock(&mutex);
  while (news[0] == '\0') pthread_cond_wait(&came, &mutex);
  pthread_mutex_unlock(&mutex);
  puts(news);
  right = right && strcmp(news, "news.today: {\"n\":1}") == 0;

  wc_subscription_free(subscription);
  wc_client_free(caller);
  wc_client_free(shapes);
  wc_server_stop(broker);
  pthread_join(thread, NULL);
  wc_server_free(broker);
  return right ? 0 : 1;
}
