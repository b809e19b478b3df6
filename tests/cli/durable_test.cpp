// Durable topics and queues as a user has them: `wirecall serve --durable`, `pub`, `sub` and `queue`, each a process of
// its own, over a restart of the broker.
#include <gtest/gtest.h>
#include <memory>
#include <signal.h>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/broker_tool.hpp"
#include "tests/server/folder.hpp"

namespace wirecall::cli {
namespace {

class DurableTool : public testing::Test {
 protected:
  DurableTool() { start(); }
  void start(const std::vector<std::string>& more = {}) {
    server_.reset();
    std::vector<std::string> words{"serve", "--port", "0", "--durable", folder_.path + "/data", "--durable-topics",
                                   "kept.>"};
    words.insert(words.end(), more.begin(), more.end());
    server_ = std::make_unique<Process>(std::move(words));
    url_ = "tcp://127.0.0.1:" + std::to_string(port_of(*server_));
  }
  Ended run(std::vector<std::string> words) const { return cli::run(std::move(words), url_); }
  std::string output(std::vector<std::string> words) const {
    const Ended ended = run(std::move(words));
    EXPECT_EQ(ended.status, 0) << ended.error;
    return ended.output;
  }
  Staying consumer() const {
    return {{"sub", "orders.>", "--durable", "billing", "--start", "first", "--count", "1"},
            url_,
            "wirecall: billing has joined orders.>"};
  }

  net::Folder folder_;
  std::unique_ptr<Process> server_;
  std::string url_;
};

TEST_F(DurableTool, an_event_is_there_after_a_kill_and_a_consumer_goes_on_where_it_was) {
  EXPECT_EQ(output({"pub", "orders.new", "{\"id\":1}", "--durable", "--msg-id", "one"}), "{\"seq\":1}\n");
  EXPECT_EQ(output({"pub", "orders.new", "{\"id\":1}", "--durable", "--msg-id", "one"}),
            "{\"seq\":1,\"duplicate\":true}\n");
  EXPECT_EQ(output({"pub", "orders.new", "{\"id\":2}", "--durable"}), "{\"seq\":2}\n");
  start();
  Staying first = consumer();
  EXPECT_EQ(first.line(), "orders.new {\"id\":1}");
  EXPECT_EQ(first.wait(), 0);
  Staying second = consumer();
  const std::string next = second.line();
  EXPECT_TRUE(next == "orders.new {\"id\":2}" || next == "orders.new {\"id\":1}") << next;  // at least once
}

TEST_F(DurableTool, a_topic_that_is_kept_is_kept_without_being_asked) {
  EXPECT_EQ(output({"pub", "kept.a", "1", "--wait", "0"}), "");
  const std::string kept = output({"call", "rpc.durable.read", "topic=kept.a"});
  EXPECT_NE(kept.find("\"params\":[1]"), std::string::npos) << kept;
}

TEST_F(DurableTool, a_job_is_pushed_worked_on_by_a_program_and_its_result_is_kept) {
  EXPECT_EQ(output({"queue", "push", "report", "year=2024"}), "1\n");
  const std::string listed = output({"queue", "ls", "--json"});
  EXPECT_NE(listed.find("\"method\":\"report\",\"waiting\":1"), std::string::npos) << listed;
  EXPECT_NE(output({"queue", "peek", "report"}).find("{\"year\":2024}"), std::string::npos);
  start();
  const Staying events{{"sub", "queue.done.report", "--count", "1"}, url_, "wirecall: subscribed to "};
  const Staying worker{{"queue", "work", "report", "--", "cat"}, url_, "wirecall: works on report"};
  const std::string done = const_cast<Staying&>(events).line();
  EXPECT_EQ(done, "{\"id\":1,\"deliveries\":1,\"result\":{\"year\":2024}}");
  const std::string result = output({"queue", "result", "1"});
  EXPECT_NE(result.find("\"state\":\"done\""), std::string::npos) << result;
}

TEST_F(DurableTool, a_program_that_fails_leaves_a_dead_job_with_the_reason) {
  EXPECT_EQ(output({"queue", "push", "report", "--max-deliver", "1"}), "1\n");
  Staying events{{"sub", "queue.dead.report", "--count", "1"}, url_, "wirecall: subscribed to "};
  const Staying worker{{"queue", "work", "report", "--", "false"}, url_, "wirecall: works on report"};
  EXPECT_NE(events.line().find("false has ended with status 1"), std::string::npos);
  EXPECT_NE(output({"queue", "peek", "report", "--state", "dead"}).find("status 1"), std::string::npos);
  EXPECT_EQ(output({"queue", "drop", "1"}), "true\n");
}

TEST_F(DurableTool, a_second_broker_on_the_folder_does_not_start_and_says_why) {
  const Ended second = cli::run({"serve", "--port", "0", "--durable", folder_.path + "/data"}, {});
  EXPECT_EQ(second.status, 3);
  EXPECT_NE(second.error.find("another process has it open"), std::string::npos) << second.error;
}

TEST_F(DurableTool, a_principal_that_keeps_too_much_is_refused_by_the_name_of_the_limit) {
  start({"--durable-principal-events", "1", "--durable-principal-jobs", "1"});
  EXPECT_EQ(output({"pub", "a", "--durable"}), "{\"seq\":1}\n");
  const Ended second = run({"pub", "a", "--durable"});
  EXPECT_NE(second.status, 0);
  EXPECT_NE(second.error.find("-32005"), std::string::npos) << second.error;
  EXPECT_NE(second.error.find("durable.principal_events"), std::string::npos) << second.error;
  EXPECT_EQ(output({"queue", "push", "work"}), "1\n");
  EXPECT_NE(run({"queue", "push", "other"}).error.find("durable.principal_jobs"), std::string::npos);
}

TEST_F(DurableTool, http_is_as_good_as_a_connection_but_for_consumers) {
  url_ = "http" + url_.substr(3) + "/rpc";
  EXPECT_EQ(output({"call", "rpc.publish", "topic=orders.new", "params={\"id\":1}", "durable=true", "msg_id=one"}),
            "{\"seq\":1}\n");
  const std::string read = output({"call", "rpc.durable.read", "topic=orders.>", "after=0"});
  EXPECT_NE(read.find("\"topic\":\"orders.new\",\"params\":{\"id\":1}"), std::string::npos) << read;
  EXPECT_EQ(output({"call", "rpc.queue.push", "method=report", "params={\"year\":2024}"}), "{\"id\":1}\n");
  const std::string result = output({"call", "rpc.queue.result", "id=1"});
  EXPECT_NE(result.find("\"state\":\"waiting\""), std::string::npos) << result;
  EXPECT_NE(output({"call", "rpc.queue.ls"}).find("\"method\":\"report\""), std::string::npos);
  EXPECT_NE(output({"call", "rpc.durable.ls"}).find("\"last_seq\":1"), std::string::npos);
  const Ended joined = run({"call", "rpc.subscribe", "topic=orders.>", "durable=billing"});
  EXPECT_NE(joined.error.find("needs_connection"), std::string::npos) << joined.error;
}

TEST_F(DurableTool, wrong_words_are_refused) {
  EXPECT_EQ(run({"queue", "pop"}).status, 2);
  EXPECT_EQ(run({"queue", "push"}).status, 2);
  EXPECT_EQ(run({"queue", "result", "x"}).status, 2);
  EXPECT_EQ(run({"pub", "a", "--msg-id", "x"}).status, 2);
  EXPECT_EQ(run({"sub", "a", "--start", "first"}).status, 2);
}

}  // namespace
}  // namespace wirecall::cli
