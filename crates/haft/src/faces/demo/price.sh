# The price of some pieces, in cents: price COUNT CENTS_EACH
# 10 % off from ten pieces on, 20 % off from a hundred pieces on.
price() {
    full=$(($1 * $2))
    if [ "$1" -ge 100 ]; then
        echo $((full - full / 5))
    elif [ "$1" -gt 10 ]; then
        echo $((full - full / 10))
    else
        echo "$full"
    fi
}
