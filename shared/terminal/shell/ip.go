package shell

import (
	"slices"
	"strings"
)

// ipFlags are the options of ip that change its output, or select an address family. The options in ipFamilies have a
// value.
const ipFlags = `-4 -6 -0 -B -br -brief -s -stats -statistics -d -details -o -oneline -j -json -p -pretty -c -color
	-c=always -c=auto -c=never -color=always -color=auto -color=never -ts -tshort -t -timestamp -h -human
	-human-readable -iec -N -Numeric`

const ipFamilies = "-f -family --family"

// ipObjects maps the objects of ip that have a line in uses.txt to their shortest abbreviation. ip takes the first of
// its objects that begins with the given word, so a shorter word means another object.
var ipObjects = map[string]string{"address": "a", "link": "l", "route": "r", "rule": "ru", "neighbor": "n",
	"neighbour": "n", "maddress": "m", "tunnel": "t", "netns": "net", "netconf": "netc"}

// ipLists are the words with which ip lists the objects of a kind. Shorter words mean something else for some kinds: ip
// link s is ip link set.
const ipLists = "sh sho show l li lis list ls lst"

// ipWords returns the arguments of ip without the options that change its output. An abbreviated object, and an
// abbreviated word for list, are written out.
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
