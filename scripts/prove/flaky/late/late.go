// Package late delays a program at chosen points. The proof flaky -delays adds it to the programs that it tests: after
// each statement that lets another goroutine continue, it inserts a call of At with the place of the statement.
package late

import (
	"bufio"
	"fmt"
	"math/bits"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// file is the name of the file with the delays. Each line is the name of a point, and the milliseconds of its delays at
// the 1st, 2nd, 4th, 8th passage and so on. A point therefore delays not only the first of many tests. At appends the
// name of each point that delays to the file with the suffix ".log".
var file = os.Getenv("LATE")

// points holds the points that delay, by name.
var points = read()

type point struct {
	delays []int // milliseconds
	passed atomic.Uint32
}

func read() map[string]*point {
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	points := map[string]*point{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		words := strings.Fields(lines.Text())
		p := &point{}
		for _, word := range words[1:] {
			n, _ := strconv.Atoi(word)
			p.delays = append(p.delays, n)
		}
		points[words[0]] = p
	}
	return points
}

// At sleeps if the point has a delay. It does nothing in a bubble of testing/synctest, whose clock starts with the year
// 2000.
func At(name string) {
	p := points[name]
	if p == nil || time.Now().Year() < 2020 {
		return
	}
	passage := uint(p.passed.Add(1))
	i := bits.Len(passage) - 1
	if passage != 1<<i || i >= len(p.delays) {
		return
	}
	if log, err := os.OpenFile(file+".log", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
		fmt.Fprintln(log, name)
		log.Close()
	}
	time.Sleep(time.Duration(p.delays[i]) * time.Millisecond)
}
