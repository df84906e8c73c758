// Any number of threads may ask a model while one teaches it. Run under ThreadSanitizer too.
#include <atomic>
#include <cmath>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "ample/continual_gp.h"
#include "support/streams.h"

namespace ample {
namespace {

TEST(Concurrency, EveryAnswerIsThatOfAWholeBatch) {
  constexpr Index kBatches = 12;
  const Matrix X = testing::random_batch(20, 2, 99).X;

  // What may be seen: the prior, and the model after each batch.
  std::vector<Vector> possible;
  ContinualGP alone;
  possible.push_back(alone.predict(X).mean);
  for (Index b = 0; b < kBatches; ++b) {
    const Batch batch = testing::random_batch(30, 2, static_cast<std::uint64_t>(b));
    alone.observe(batch.X, batch.y);
    possible.push_back(alone.predict(X).mean);
  }

  ContinualGP gp;
  std::atomic<bool> done = false;
  std::atomic<int> wrong = 0;
  std::atomic<int> answers = 0;
  const auto ask = [&] {
    while (!done) {
      const Vector mean = gp.predict(X).mean;
      bool known = false;
      for (const Vector& p : possible) known = known || mean == p;
      wrong += known ? 0 : 1;
      if (const auto now = gp.predictor()) wrong += now->size() == now->state().size() ? 0 : 1;
      static_cast<void>(gp.kernel().to_string());
      static_cast<void>(ContinualGP(gp).rows_seen());
      ++answers;
    }
  };
  std::vector<std::thread> readers;
  readers.reserve(3);
  for (int i = 0; i < 3; ++i) readers.emplace_back(ask);
  for (Index b = 0; b < kBatches; ++b) {
    const Batch batch = testing::random_batch(30, 2, static_cast<std::uint64_t>(b));
    gp.observe(batch.X, batch.y);
  }
  while (answers < 3) std::this_thread::yield();
  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(gp.predict(X).mean, possible.back());
}

TEST(Concurrency, APredictorDoesNotChange) {
  ContinualGP gp;
  EXPECT_EQ(gp.predictor(), nullptr);
  const Batch first = testing::random_batch(30, 2, 1);
  const Batch second = testing::random_batch(30, 2, 2);
  gp.observe(first.X, first.y);
  const auto before = gp.predictor();
  EXPECT_EQ(before, gp.predictor());  // shared, not copied
  const Vector mean = before->predict(second.X).mean;
  gp.observe(second.X, second.y);
  EXPECT_EQ(before->predict(second.X).mean, mean);
  EXPECT_NE(gp.predict(second.X).mean, mean);
}

}  // namespace
}  // namespace ample
