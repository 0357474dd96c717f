package demohost

import "testing"

// TestPrograms checks that programs print the same as GNU's, or say that they cannot.
func TestPrograms(t *testing.T) {
	h := openTest(t)
	h.say(t, `cd; mkdir -p d/e; printf 'b 2 x\na 10 y\nb 2 x\n' | tee d/e/t > t; printf 'cost $5\n/usr/bin\n' > p`)
	for command, want := range map[string]string{
		`grep -c b t; grep -n a t; grep -v b t`:                 "2\n2:a 10 y\na 10 y\n",
		`grep -rl y d; grep -L y t p; grep -rc b d`:             "d/e/t\np\nd/e/t:2\n",
		`grep -e x -e y t | wc -l`:                              "3\n",
		`grep 'a\|q' t; grep -o '[0-9]*' t`:                     "a 10 y\n2\n10\n2\n",
		`seq 9 | grep -C1 -n '[37]'`:                            "2-2\n3:3\n4-4\n--\n6-6\n7:7\n8-8\n",
		`seq 9 | grep -A1 -m1 3; seq 3 | grep -B 9 3`:           "3\n4\n1\n2\n3\n",
		`seq 5 | grep --after-context 1 -e 2 -e 4; echo $?`:     "2\n3\n4\n5\n0\n",
		`grep -s x nosuchfile; echo $?; grep -q a t; echo $?`:   "2\n0\n",
		`sort t | uniq -c`:                                      "      1 a 10 y\n      2 b 2 x\n",
		`sort -k2 -nr t | head -n1; head --lines 1 t`:           "a 10 y\nb 2 x\n",
		`cut -d' ' -f2- t; tr a-z A-Z < t | tail -1`:            "2 x\n10 y\n2 x\nB 2 X\n",
		`sed s/b/c/ t | uniq; sed -n 2p t`:                      "c 2 x\na 10 y\nc 2 x\na 10 y\n",
		`sed 's/B/c/i' t | head -1; sed 's/x/"&"/' t | tail -1`: "c 2 x\nb 2 \"x\"\n",
		`sed -e s/a/q/ -e s/y/z/ t | sed -n '2,$p'`:             "q 10 z\nb 2 x\n",
		`sed -E 's/(.) (.)/\2$\1/' t`:                           "2$b x\n1$a0 y\n2$b x\n",
		`sed 's/\/usr/X/' p; sed 's|\$5|$6|' p`:                 "cost $5\nX/bin\ncost $6\n/usr/bin\n",
		`sed 's/a/b/;s/c/d/' p`: "sed: -e expression #1: this machine supports " +
			"only s/a/b/ and 3,9p\n",
		`sed -i s/2/3/g d/e/t; cat d/e/t; sed -i s/3/2/g d/e/t`: "b 3 x\na 10 y\nb 3 x\n",
		`head -qn1 t p; tail -n 1 t p; tail -n +2 p`: "b 2 x\ncost $5\n==> t <==\nb 2 x\n\n==> p " +
			"<==\n/usr/bin\n/usr/bin\n",
		`tail -c 4 t; head -2 < p | tail -1; tail -n x t`:         "2 x\n/usr/bin\ntail: invalid number: 'x'\n",
		`tr -cd 'a-z\n' < t; tr -c '0-9\n' _ < p; cut -d/ -sf2 p`: "bx\nay\nbx\n______5\n________\nusr\n",
		`cp p n; cp -n t n; cat n; cp d n2; echo $?; cat d; rmdir n`: "cost $5\n/usr/bin\ncp: -r not specified; " +
			"omitting directory '/root/d'\n1\ncat: d: Is a directory\nrmdir: failed to remove 'n': Not a directory\n",
		`sort -o x t; date -d yesterday`: "sort: invalid option -- 'o'\ndate: invalid " +
			"option -- 'd'\n",
		`seq 3 | xargs -n2 echo; seq 2 | xargs -I{} echo n{}`: "1 2\n3\nn1\nn2\n",
		`find d -type f -ok rm {} \;`:                         "find: unknown predicate `-ok'\n",
		`find d -type f; basename d/e; seq 3 -1 1`:            "d/e/t\ne\n3\n2\n1\n",
		`du --max-depth 0 d; du -d`:                           "12\td\ndu: option requires an argument -- 'd'\n",
	} {
		if out, _ := h.say(t, "cd; "+command); out != want {
			t.Errorf("%q prints\n%s, want\n%s", command, out, want)
		}
	}
}
