#include "visible_text.h"

#include <random>
#include <string>

#include <gtest/gtest.h>

namespace ample {
namespace {

TEST(VisibleText, LeavesWhatIsVisible) {
  for (const std::string text : {"", "plain text", "a\\b \"c\" 'd'", "σ² ≤ α, naïve, 数", "😀"}) {
    EXPECT_EQ(visible(text), text);
  }
}

TEST(VisibleText, EscapesControlCharacters) {
  EXPECT_EQ(visible("a\nb\tc\r\x1b[31m\x7f"), R"(a\x0ab\x09c\x0d\x1b[31m\x7f)");
  EXPECT_EQ(visible(std::string("\0", 1)), R"(\x00)");
  EXPECT_EQ(visible("\xC2\x9B"
                    "31m"),
            R"(\xc2\x9b31m)");                 // CSI as one C1 character
  EXPECT_EQ(visible("\xC2\xA0"), "\xC2\xA0");  // the first beyond C1
  EXPECT_EQ(visible("a\xE2\x80\xAE"
                    "b"),
            R"(a\xe2\x80\xaeb)");  // right to left from here on
  EXPECT_EQ(visible("a\xE2\x80\xA8"
                    "b"),
            R"(a\xe2\x80\xa8b)");  // line separator
}

TEST(VisibleText, EscapesWhatIsNotUtf8) {
  EXPECT_EQ(visible("caf\xE9"), R"(caf\xe9)");
  EXPECT_EQ(visible("\xC0\xAF"), R"(\xc0\xaf)");          // overlong
  EXPECT_EQ(visible("\xED\xA0\x80"), R"(\xed\xa0\x80)");  // half of a surrogate pair
  EXPECT_EQ(visible("\xF4\x90\x80\x80"), R"(\xf4\x90\x80\x80)");
  EXPECT_EQ(visible("\xE2\x80"), R"(\xe2\x80)");  // cut off
}

TEST(VisibleText, CutsBetweenCharacters) {
  EXPECT_EQ(visible("12345", 5), "12345");
  EXPECT_EQ(visible("123456", 5), "12345...");
  EXPECT_EQ(visible("123σ", 4), "123...");
  EXPECT_EQ(visible("12\n4", 4), "12...");
}

TEST(VisibleText, OfAnyBytesIsUtf8WithoutControls) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 2000; ++trial) {
    std::string text(random() % 20, ' ');
    for (char& c : text) c = static_cast<char>(random());
    const std::string shown = visible(text);
    EXPECT_TRUE(is_utf8(shown));
    for (const char c : shown) EXPECT_FALSE(static_cast<unsigned char>(c) < 0x20 || c == 0x7F);
    EXPECT_EQ(visible(shown), shown);
  }
}

}  // namespace
}  // namespace ample
