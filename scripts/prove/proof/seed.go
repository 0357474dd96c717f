package proof

import (
	"errors"
	"math/rand/v2"
	"strconv"
)

// Seed is the default seed. It is constant, so each run of a commit tries the same.
const Seed = 1

// seed is the value of -seed: a positive number, or the word random.
type seed uint64

func (s *seed) String() string { return strconv.FormatUint(uint64(*s), 10) }

func (s *seed) Set(text string) error {
	if text == "random" {
		*s = seed(rand.Uint64N(1<<32) + 1)
		return nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 {
		return errors.New("must be a positive number or random")
	}
	*s = seed(n)
	return nil
}
