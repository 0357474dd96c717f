package proof

import (
	"errors"
	"math/rand/v2"
	"strconv"
)

// Seed is the seed of each proof, unless -seed names another one: a commit is tried in the same way each time.
const Seed = 1

// seed is the value of -seed: a number above 0, or the word random.
type seed uint64

func (s *seed) String() string { return strconv.FormatUint(uint64(*s), 10) }

func (s *seed) Set(text string) error {
	if text == "random" {
		*s = seed(rand.Uint64N(1<<32) + 1)
		return nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 {
		return errors.New("neither a number above 0 nor random")
	}
	*s = seed(n)
	return nil
}
