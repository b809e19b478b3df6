/* The parameters of deferred calls count among what their connection holds: one that has too many of them is closed. */
#include <semaphore.h>

#include "check.h"

enum { kCalls = 12, kTextBytes = 200000 };

static sem_t moved; /* a handler has its call, or a call is over */
static wc_call *kept[kCalls];
static int kept_count, lost_count, over_count;
static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;

static void keeps(wc_call *call, void *user) {
  wc_call *const later = wc_call_defer(call);
  (void)user;
  CHECK(later != NULL);
  pthread_mutex_lock(&counting);
  CHECK(kept_count < kCalls);
  kept[kept_count++] = later;
  pthread_mutex_unlock(&counting);
  sem_post(&moved);
}

static void done(const wc_reply *reply, void *user) {
  (void)user;
  pthread_mutex_lock(&counting);
  ++over_count;
  if (wc_reply_error(reply) == -32001) ++lost_count;
  pthread_mutex_unlock(&counting);
  sem_post(&moved);
}

static int of(const int *counter) {
  int value;
  pthread_mutex_lock(&counting);
  value = *counter;
  pthread_mutex_unlock(&counting);
  return value;
}

int main(void) {
  running_server running;
  char *params = malloc(kTextBytes + 8);
  wc_client *client;
  wc_server *server = wc_server_new("{\"limits\": {\"principal_bytes\": 1000000}}");
  int started = 0, released = 0;
  CHECK(server != NULL && params != NULL);
  sem_init(&moved, 0, 0);
  strcpy(params, "[\"");
  memset(params + 2, 'x', kTextBytes);
  strcpy(params + 2 + kTextBytes, "\"]");
  CHECK(wc_server_method(server, "keeps", keeps, NULL) == WC_OK);
  client = start_server(&running, server);
  /* One after the other, until the connection is lost with the calls that are waited for. */
  while (started != kCalls && of(&lost_count) == 0) {
    CHECK(wc_client_start(client, "keeps", params, NULL, done, NULL, NULL) == WC_OK);
    ++started;
    sem_wait(&moved);
  }
  /* The last one may have come by the next connection. */
  while (of(&over_count) != started) {
    while (released != of(&kept_count)) wc_call_release(kept[released++]);
    sem_wait(&moved);
  }
  while (released != of(&kept_count)) wc_call_release(kept[released++]);
  CHECK(started < kCalls && lost_count > 0);
  free(params);
  wc_client_free(client);
  end_server(&running);
  return 0;
}
