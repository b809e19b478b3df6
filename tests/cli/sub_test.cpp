// `wirecall sub` and `wirecall pub` as a user runs them, at a broker that is a process of its own.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/commands/commands.hpp"
#include "tests/cli/broker_tool.hpp"
#include "tests/connection/peer.hpp"
#include "wirecall/endpoint.hpp"

namespace wirecall::cli {
namespace {

class Sub : public BrokerTool {
 protected:
  class Subscriber : public Staying {
   public:
    Subscriber(std::vector<std::string> words, const std::string& url)
        : Staying(std::move(words), url, "wirecall: subscribed to ") {}
  };
  Subscriber subscriber(std::vector<std::string> words) {
    words.insert(words.begin(), "sub");
    return {std::move(words), url_};
  }
  /// Publishes what a subscriber is waiting for.
  void publish(std::vector<std::string> words) {
    words.insert(words.begin(), "pub");
    EXPECT_EQ(output(std::move(words)), "");
  }
};

TEST_F(Sub, prints_the_value_of_each_event_of_a_topic) {
  Subscriber sub = subscriber({"news"});
  publish({"news", "21.5"});
  EXPECT_EQ(sub.line(), "21.5");
  publish({"news", "all is well"});
  EXPECT_EQ(sub.line(), "\"all is well\"");
  publish({"news", "[1,2]"});
  EXPECT_EQ(sub.line(), "[1,2]");
  publish({"news", "[[1], 2]"});
  EXPECT_EQ(sub.line(), "[[1],2]");
  publish({"news", " {\"a\" : 1}"});
  EXPECT_EQ(sub.line(), "{\"a\":1}");
  publish({"news", "1", "x"});
  EXPECT_EQ(sub.line(), "[1,\"x\"]");
  publish({"news", "state=open", "by:str=7"});
  EXPECT_EQ(sub.line(), "{\"state\":\"open\",\"by\":\"7\"}");
  publish({"news"});
  EXPECT_EQ(sub.line(), "null");
  publish({"news", "--", "--raw"});
  EXPECT_EQ(sub.line(), "\"--raw\"");
}

TEST_F(Sub, names_the_topic_where_several_may_come) {
  Subscriber all = subscriber({"sensors.>"});
  Subscriber some = subscriber({"sensors.*.temp", "--json"});
  publish({"sensors.roof.rain", "true"});
  publish({"sensors.roof.temp", "21.5"});
  EXPECT_EQ(all.line(), "sensors.roof.rain true");
  EXPECT_EQ(all.line(), "sensors.roof.temp 21.5");
  EXPECT_EQ(some.line(), "{\"topic\":\"sensors.roof.temp\",\"value\":21.5}");
}

TEST_F(Sub, an_event_is_one_line_however_it_was_sent) {
  Subscriber sub = subscriber({"news"});
  net::RawPeer peer{Endpoint{url_}};
  peer.send("{\"jsonrpc\":\"2.0\",\"method\":\"news\",\"params\":{ \"a\":\n [1,\n 2] }}\n");
  EXPECT_EQ(sub.line(), "{\"a\":[1,2]}");
}

TEST_F(Sub, ends_after_so_many_events) {
  Subscriber sub = subscriber({"news", "--count", "2"});
  net::RawPeer peer{Endpoint{url_}};
  std::string events;
  for (int i = 0; i < 5; ++i) events += R"({"jsonrpc":"2.0","method":"news","params":[)" + std::to_string(i) + "]}\n";
  peer.send(events);
  EXPECT_EQ(sub.rest_of_output(), "0\n1\n");
  EXPECT_EQ(sub.wait(), 0);
  EXPECT_EQ(sub.rest_of_error(), "wirecall: subscribed to news\n");
}

TEST_F(Sub, a_signal_ends_it) {
  for (const int signal : {SIGINT, SIGTERM}) {
    Subscriber sub = subscriber({"news"});
    sub.signal(signal);
    EXPECT_EQ(sub.wait(), 128 + signal);
    EXPECT_EQ(sub.rest_of_output(), "");
  }
}

TEST_F(Sub, what_is_retained_comes_first) {
  publish({"news.a", "1", "--retain"});
  publish({"news.b", "2", "--retain"});
  EXPECT_EQ(run({"sub", "news.*", "--last", "--count", "2"}).output, "news.a 1\nnews.b 2\n");
  publish({"news.a", "--retain"});
  EXPECT_EQ(run({"sub", "news.*", "--last", "--count", "1"}).output, "news.b 2\n");
}

TEST_F(Sub, one_of_a_group_is_told) {
  Subscriber one = subscriber({"jobs", "--group", "workers"});
  Subscriber other = subscriber({"jobs", "--group", "workers"});
  for (const std::string job : {"1", "2", "3", "4"}) publish({"jobs", job});
  const std::string first = one.line();
  const std::string second = other.line();
  EXPECT_EQ(std::stoi(one.line()), std::stoi(first) + 2) << "in turn";
  EXPECT_EQ(std::stoi(other.line()), std::stoi(second) + 2);
  EXPECT_NE(first, second);
}

TEST_F(Sub, what_was_started_together_is_waited_for) {
  Process pub{{"pub", "sensors.roof.temp", "21.5", "--wait", "1m"}, url_};
  Subscriber sub = subscriber({"sensors.*.temp"});
  EXPECT_EQ(sub.line(), "sensors.roof.temp 21.5");
  EXPECT_EQ(pub.wait(), 0);
  EXPECT_EQ(pub.rest_of_output() + pub.rest_of_error(), "");
}

TEST_F(Sub, pub_says_when_nobody_subscribes) {
  const Ended ended = run({"pub", "news", "1", "--wait", "0"});
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.output, "");
  EXPECT_EQ(ended.error, "wirecall: nobody subscribes to news\n");
  Process waiting{{"pub", "news", "1", "--wait", "1h"}, url_};
  waiting.signal(SIGKILL);
  EXPECT_EQ(waiting.wait(), -SIGKILL);
}

TEST_F(Sub, connects_again_by_itself) {
  Subscriber sub = subscriber({"news", "--reconnect-min-ms", "5", "--reconnect-max-ms", "10"});
  server_.signal(SIGTERM);
  EXPECT_EQ(server_.wait(), 0);
  Process again{{"serve", "--port", std::to_string(port_)}};
  EXPECT_EQ(port_of(again), port_);
  publish({"news", "back", "--wait", "1m"});
  EXPECT_EQ(sub.line(), "\"back\"");
}

TEST_F(Sub, a_connection_that_is_lost_and_made_again_is_told_of) {
  Subscriber sub = subscriber({"news", "--reconnect-min-ms", "5", "--reconnect-max-ms", "10"});
  server_.signal(SIGKILL);
  EXPECT_EQ(server_.wait(), -SIGKILL);
  EXPECT_NE(sub.read_error_until("; connecting again\n").find("the connection to " + url_ + " is gone: "),
            std::string::npos);
  Process again{{"serve", "--port", std::to_string(port_)}};
  EXPECT_NE(sub.read_error_until(": subscribed to news\n", 2).find("connected to " + url_ + " again"),
            std::string::npos);
}

TEST_F(Sub, events_that_were_dropped_are_told_of) {
  Process server{serve({"--limits-soft-output", "1024", "--max-message-size", "100000"})};
  const std::string url = "tcp://127.0.0.1:" + std::to_string(port_of(server));
  Subscriber sub{{"sub", "news"}, url};
  net::RawPeer peer{Endpoint{url}};
  // Nobody reads what it prints, so its pipe fills, then its socket, then the broker's buffer; and then it is read.
  const std::string event = R"({"jsonrpc":"2.0","method":"news","params":[")" + std::string(60'000, 'x') + "\"]}\n";
  for (int i = 0; i < 400; ++i) ASSERT_TRUE(peer.send(event));
  ASSERT_TRUE(peer.send(R"({"jsonrpc":"2.0","method":"rpc.ping","id":1})"
                        "\n"));
  EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","result":"pong","id":1})");
  std::string output;
  std::thread reader{[&] { output = sub.rest_of_output(); }};
  EXPECT_NE(sub.read_error_until("come faster than they are read").find("events of news were dropped"),
            std::string::npos);
  sub.signal(SIGINT);
  reader.join();
  EXPECT_EQ(sub.wait(), 130);
  EXPECT_NE(output, "");
}

TEST_F(Sub, exit_statuses) {
  EXPECT_EQ(run({"sub"}).status, 2);
  EXPECT_EQ(run({"sub", "a..b"}).error,
            "wirecall: a..b is no topic: words between dots, any of which may be * and the last one >, without white "
            "space\n");
  EXPECT_EQ(run({"sub", "a", "b"}).status, 2);
  EXPECT_EQ(run({"sub", "a", "--count", "0"}).status, 2);
  EXPECT_EQ(run({"sub", "a", "--url", "http://127.0.0.1:" + std::to_string(port_)}).status, 2);
  const Ended by_https = run({"sub", "a", "--url", "https://127.0.0.1:1"});
  EXPECT_EQ(by_https.status, 2);
  EXPECT_NE(by_https.error.find("`curl -N https://HOST/events?topic=TOPIC`"), std::string::npos) << by_https.error;
  EXPECT_EQ(run({"sub", "a", "--url", "tcp://127.0.0.1:1"}).status, 3);
  EXPECT_EQ(run({"sub", "a", "--url", "nonsense:"}).status, 2);
  EXPECT_EQ(run({"pub"}).status, 2);
  EXPECT_EQ(run({"pub", "a", "1", "b=2"}).status, 2);
  EXPECT_EQ(run({"pub", "a", "1", "--wait", "soon"}).status, 2);
  EXPECT_EQ(run({"pub", "a.*", "1"}).status, 1);
  EXPECT_EQ(run({"pub", "rpc.a", "1"}).status, 1);
  EXPECT_EQ(run({"pub", "a", "1", "--url", "tcp://127.0.0.1:1"}).status, 3);
}

TEST_F(Sub, a_server_that_is_no_broker_is_told_of) {
  const PlainServer server;
  const Ended ended = cli::run({"sub", "news"}, server.url());
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.error.find("the server is no broker"), std::string::npos) << ended.error;
}

TEST_F(Sub, one_that_is_not_answered_ends_in_time) {
  const SilentServer silent;
  const std::string url = silent.url();
  EXPECT_EQ(cli::run({"sub", "news", "--timeout", "100ms"}, url).status, 4);
  EXPECT_EQ(cli::run({"pub", "news", "1", "--timeout", "100ms"}, url).status, 4);
}

}  // namespace
}  // namespace wirecall::cli
