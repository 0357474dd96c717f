package shell

import (
	"slices"
	"strings"
)

// ipFlags are the options of ip that change how it prints, or select a family. Those of ipFamilies have a value.
const ipFlags = `-4 -6 -0 -B -br -brief -s -stats -statistics -d -details -o -oneline -j -json -p -pretty -c -color
	-c=always -c=auto -c=never -color=always -color=auto -color=never -ts -tshort -t -timestamp -h -human
	-human-readable -iec -N -Numeric`

const ipFamilies = "-f -family --family"

// ipObjects are the objects of ip that have a line in uses.txt, after the shortest word that means them and not an
// object that ip looks for before them: ip takes the first of its objects that begins with the word.
var ipObjects = map[string]string{"address": "a", "link": "l", "route": "r", "rule": "ru", "neighbor": "n",
	"neighbour": "n", "maddress": "m", "tunnel": "t", "netns": "net", "netconf": "netc"}

// ipLists are the words with which ip lists the objects of a kind. A shorter one means something else for some of them:
// ip link s is ip link set.
const ipLists = "sh sho show l li lis list ls lst"

// ipWords returns the arguments of ip without the options that change how it prints. An abbreviated object, and a word
// that lists, are written out.
func ipWords(args []string) []string {
	for len(args) > 0 && isAmong(ipFlags, args[0]) || len(args) > 1 && isAmong(ipFamilies, args[0]) {
		if isAmong(ipFamilies, args[0]) {
			if !isAmong("inet inet6 link bridge mpls", args[1]) {
				return nil
			}
			args = args[1:]
		}
		args = args[1:]
	}
	if len(args) == 0 {
		return nil
	}
	args = slices.Clone(args)
	for object, shortest := range ipObjects {
		if strings.HasPrefix(object, args[0]) && strings.HasPrefix(args[0], shortest) {
			args[0] = strings.ReplaceAll(object, "neighbour", "neighbor")
			break
		}
	}
	if len(args) > 1 && args[0] == "route" && isAmong("g ge", args[1]) {
		args[1] = "get"
	}
	if len(args) > 1 && (isAmong(ipLists, args[1]) || args[1] == "s" && args[0] != "link") {
		args[1] = "show"
	}
	return args
}
