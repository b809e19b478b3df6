#include "codec/codec_arena.hpp"

#include <cstring>
#include <gtest/gtest.h>
#include <set>
#include <vector>

namespace wirecall::codec {
namespace {

TEST(Arena, WhatItHandsOutDoesNotMoveOrOverlap) {
  Arena arena;
  std::vector<std::pair<char*, std::size_t>> pieces;
  for (std::size_t i = 0; i < 300; ++i) {
    const std::size_t size = 1 + i * 37 % 5000;
    char* piece = arena.allocate(size);
    std::memset(piece, static_cast<int>(i % 256), size);
    pieces.emplace_back(piece, size);
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    for (std::size_t j = 0; j < pieces[i].second; ++j) {
      ASSERT_EQ(static_cast<unsigned char>(pieces[i].first[j]), i % 256);
    }
  }
}

TEST(Arena, HandsOutTheSameMemoryAfterRewind) {
  Arena arena;
  std::set<char*> first;
  for (int i = 0; i < 20; ++i) first.insert(arena.allocate(1000));
  for (int round = 0; round < 5; ++round) {
    arena.rewind();
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(first.contains(arena.allocate(1000)));
  }
}

TEST(Arena, ServesAHugePieceAndForgetsIt) {
  Arena arena;
  std::memset(arena.allocate(std::size_t{1} << 24), 1, std::size_t{1} << 24);
  arena.rewind();
  std::memset(arena.allocate(100), 1, 100);
  arena.rewind();
  std::memset(arena.allocate(5000), 1, 5000);
}

}  // namespace
}  // namespace wirecall::codec
