// A key-value store on disk, LMDB, whose operations are methods (docs/store.md). This file says how they become
// methods; database.hpp does what they ask for, and changes.hpp tells those who watch.
//     example_store FOLDER [URI] [MAP_BYTES] [VALUE_BYTES]
#include <charconv>
#include <iostream>

#include "changes.hpp"
#include "database.hpp"
#include "wirecall/wirecall.hpp"

namespace {

using namespace store;

// Entries are read as the caller takes them, a block at a time. No read transaction is open between blocks, since LMDB
// could not reuse the pages that it sees for as long as a slow caller takes: the next one goes on behind the last key.
wirecall::Stream<Entry> range(Database& database, std::string first, std::string end) {
  for (bool beyond = false;; beyond = true) {
    std::vector<Entry> entries = database.read(first, beyond, end);
    if (entries.empty()) co_return;
    first = entries.back().key;
    for (Entry& entry : entries) co_yield std::move(entry);
  }
}

std::size_t bytes(std::string_view text) {
  std::size_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error == std::errc{} && end == text.data() + text.size()) return count;
  throw std::invalid_argument{"'" + std::string{text} + "' is no number of bytes"};
}

void serve(Database& database, Changes& changes, const char* uri) {
  wirecall::Server server;

  // On the thread of the loop. What is found stays in LMDB's memory until it has been written into the answer.
  server.method("get", [&](std::string_view key) { return database.get(key); }, {"key"}).safe();
  server.method("range", [&](std::string first, std::string end) { return range(database, first, end); },
                {wirecall::Param{"first"}.default_value(""), wirecall::Param{"end"}.default_value("")});

  // These are called on a thread of the pool, once for all calls that came while the last commit was written to disk.
  // They share one transaction, and are answered when it is on disk.
  const wirecall::BatchOptions together{.size = 1024, .bytes = std::size_t{8} << 20};
  server.batch_method("put",
                      [&](std::vector<std::string> keys, std::vector<Bytes> values) {
                        std::vector<Write> writes(keys.size());
                        for (std::size_t i = 0; i != keys.size(); ++i)
                          writes[i].push_back({std::move(keys[i]), std::move(values[i])});
                        return database.commit(std::move(writes));
                      },
                      together, {"key", "value"});
  server.batch_method("delete",
                      [&](std::vector<std::string> keys) {
                        std::vector<Write> writes(keys.size());
                        for (std::size_t i = 0; i != keys.size(); ++i) writes[i].push_back({std::move(keys[i]), {}});
                        return database.commit(std::move(writes));
                      },
                      together, {"key"});
  server.batch_method("batch", [&](std::vector<Write> writes) { return database.commit(std::move(writes)); }, together,
                      {"changes"});

  server.subscription({.subscribe = "watch", .unsubscribe = "unwatch", .notification = "changed"},
                      [&](wirecall::Context context, std::string prefix) { return changes.watch(context, prefix); },
                      {wirecall::Param{"prefix"}.default_value("")});

  std::cout << server.listen(uri).uri() << std::endl;
  server.run();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: " << argv[0] << " FOLDER [URI] [MAP_BYTES] [VALUE_BYTES]\n";
    return 2;
  }
  try {
    Bounds bounds;
    if (argc > 3) bounds.map_bytes = bytes(argv[3]);
    if (argc > 4) bounds.value_bytes = bytes(argv[4]);
    Changes changes;
    Database database{argv[1], bounds, [&](std::vector<Write> writes) { changes.publish(std::move(writes)); }};
    serve(database, changes, argc > 2 ? argv[2] : "tcp://127.0.0.1:8545");
  } catch (const std::exception& error) {
    std::cerr << argv[0] << ": " << error.what() << "\n";
    return 1;
  }
}
