#!/bin/sh
# Checks the prices. Exits 1 when one of them is wrong.
. ./src/price.sh

failed=0
check() {
    if [ "$2" = "$3" ]; then
        echo "ok    $1"
    else
        echo "FAIL  $1: got $2, wanted $3"
        failed=1
    fi
}

check "one piece costs its price" "$(price 1 250)" 250
check "nine pieces have no discount" "$(price 9 100)" 900
check "ten pieces are 10 % off" "$(price 10 100)" 900
check "a hundred pieces are 20 % off" "$(price 100 100)" 8000
exit $failed
