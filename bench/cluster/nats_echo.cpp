// What libnats itself takes for a request and its reply between two processes, driven as a broker drives it: by one
// thread that waits for the socket, without callbacks. bench/cluster.py compares brokers with it.
//
//     nats_echo respond URL
//     nats_echo request URL IN_FLIGHT SECONDS
//
// The second prints one line of JSON, as router_load does.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nats/nats.h>
#include <poll.h>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr char kPayload[] = R"({"jsonrpc":"2.0","method":"echo","params":["0123456789"],"id":12})";

void require(natsStatus status) {
  if (status == NATS_OK) return;
  std::fprintf(stderr, "libnats: %s\n", natsStatus_GetText(status));
  std::exit(1);
}

struct Connection {
  explicit Connection(const char* url) {
    natsOptions* options = nullptr;
    require(natsOptions_Create(&options));
    require(natsOptions_SetURL(options, url));
    require(natsOptions_SetSendAsap(options, true));
    require(natsOptions_SetEventLoop(
        options, this,
        [](void** data, void* loop, natsConnection*, natsSock socket) {
          static_cast<Connection*>(loop)->socket = socket;
          *data = loop;
          return NATS_OK;
        },
        [](void*, bool) { return NATS_OK; },
        [](void* data, bool add) {
          if (data != nullptr) static_cast<Connection*>(data)->wants_write.store(add);
          return NATS_OK;
        },
        [](void*) { return NATS_OK; }));
    require(natsConnection_Connect(&connection, options));
    natsOptions_Destroy(options);
  }
  void subscribe(const char* subject) {
    require(natsConnection_SubscribeSync(&subscription, connection, subject));
    while (wants_write.load()) natsConnection_ProcessWriteEvent(connection);
  }
  // Calls use(message) for each that has come; false after `wait_ms` without any.
  template <class Use>
  bool turn(int wait_ms, const Use& use) {
    if (wants_write.load()) natsConnection_ProcessWriteEvent(connection);
    pollfd waits{.fd = socket, .events = static_cast<short>(POLLIN | (wants_write.load() ? POLLOUT : 0)), .revents = 0};
    if (::poll(&waits, 1, wait_ms) <= 0) return false;
    if ((waits.revents & POLLIN) != 0) natsConnection_ProcessReadEvent(connection);
    for (natsMsg* message = nullptr; natsSubscription_NextMsg(&message, subscription, 0) == NATS_OK;) {
      use(message);
      natsMsg_Destroy(message);
    }
    if (wants_write.load()) natsConnection_ProcessWriteEvent(connection);
    return true;
  }

  natsConnection* connection = nullptr;
  natsSubscription* subscription = nullptr;
  int socket = -1;
  std::atomic<bool> wants_write{false};
};

[[noreturn]] void respond(const char* url) {
  Connection own{url};
  own.subscribe("bench.echo");
  std::puts("ready");
  std::fflush(stdout);
  for (;;) {
    own.turn(1000, [&](natsMsg* message) {
      require(natsConnection_Publish(own.connection, natsMsg_GetReply(message), natsMsg_GetData(message),
                                     natsMsg_GetDataLength(message)));
    });
  }
}

void request(const char* url, std::size_t in_flight, double seconds) {
  Connection own{url};
  own.subscribe("_INBOX.bench.*");
  std::vector<Clock::time_point> sent(in_flight);
  std::vector<double> times;
  const auto send = [&](std::size_t slot) {
    sent[slot] = Clock::now();
    require(natsConnection_PublishRequest(
        own.connection, "bench.echo", ("_INBOX.bench." + std::to_string(slot)).c_str(), kPayload, sizeof kPayload - 1));
  };
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  for (std::size_t slot = 0; slot != in_flight; ++slot) send(slot);
  while (Clock::now() < end) {
    own.turn(1000, [&](natsMsg* message) {
      const std::size_t slot = std::strtoul(std::strrchr(natsMsg_GetSubject(message), '.') + 1, nullptr, 10);
      times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - sent.at(slot)).count());
      send(slot);
    });
  }
  std::ranges::sort(times);
  const auto at = [&](double part) {
    return times.empty() ? 0.0 : times[static_cast<std::size_t>(part * static_cast<double>(times.size() - 1))];
  };
  std::printf(R"({"count":%zu,"seconds":%.3f,"p50_us":%.1f,"p99_us":%.1f})"
              "\n",
              times.size(), seconds, at(0.5), at(0.99));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "respond") == 0) respond(argv[2]);
  if (argc != 5 || std::strcmp(argv[1], "request") != 0) {
    std::fprintf(stderr, "nats_echo respond URL | request URL IN_FLIGHT SECONDS\n");
    return 2;
  }
  request(argv[2], static_cast<std::size_t>(std::atoll(argv[3])), std::atof(argv[4]));
}
